"""Chaos: a study on a real cluster of three nodes while workers, raylets and drivers are killed; its tables must not change."""
