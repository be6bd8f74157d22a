"""Compile a trial into steps, print them as a shell script, and compare the network with the plan.

A step is plain data (``qjump_mn.executor.steps``); nothing is run here.
"""
