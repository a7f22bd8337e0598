"""Devices: what computes and what holds, from system files and spreadsheets."""
