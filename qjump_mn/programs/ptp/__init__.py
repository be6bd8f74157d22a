"""The program ptp: the Precision Time Protocol, by ptpd or ptp4l."""
