"""The program shuffle (native/shuffle): the traffic of a MapReduce job."""
