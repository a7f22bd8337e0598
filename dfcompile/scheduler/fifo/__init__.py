"""Capacities of FIFOs: by rule, and the smallest that keep a makespan."""
