"""The Precision Time Protocol, by ptpd or ptp4l."""
