"""Repair schedules: from what the checker finds to the smallest edit after which it finds nothing."""
