"""Runs compiled schedules: on this machine's threads (``cpu``), in a model of the device (``simulate``), on devices."""
