"""The utilisation model of model switching, for a load time that is known with an interval.

    U = 1 - n * t_load / 3600 s

n is the number of switches an hour, t_load the seconds one load takes, U the share of the hour left
for work. The view `utilisation` of data/queries/metrics.sql computes it for every run; here are the
ends of an interval, which are of no single run. Cannot show: work that goes on while a model loads,
or time lost to anything but loading.
"""

from __future__ import annotations

import math

from r8.errors import MetricError

SECONDS_PER_HOUR = 3600.0
# The published operating point, and the range the curve is drawn over.
PUBLISHED_SWITCHES_PER_HOUR = 20
CURVE = range(1, 61)


def utilisation(switches_per_hour: float, load_s: float) -> float:
    """Share of an hour left for work, 0 to 1.

    Raises:
        MetricError: the loads alone need more than the hour, or an argument is no number that could
            be one.

    """
    if not (math.isfinite(switches_per_hour) and math.isfinite(load_s)):
        raise _refused(f"{switches_per_hour} switches of {load_s} s are no numbers")
    if switches_per_hour < 0 or load_s < 0:
        raise _refused(f"{switches_per_hour} switches of {load_s} s: neither can be negative")
    loading_s = switches_per_hour * load_s
    if loading_s > SECONDS_PER_HOUR:
        raise _refused(
            f"{switches_per_hour:g} switches of {load_s:g} s are {loading_s:g} s, more than the "
            "hour they are to happen in"
        )
    return 1 - loading_s / SECONDS_PER_HOUR


def load_s_of(switches_per_hour: float, used: float) -> float:
    """Seconds one load takes for a utilisation, the model inverted.

    Raises:
        MetricError: no switches, or a utilisation outside 0 to 1.

    """
    if not (switches_per_hour > 0 and 0 <= used <= 1):
        raise _refused(f"utilisation {used} at {switches_per_hour} switches an hour has no load")
    return (1 - used) * SECONDS_PER_HOUR / switches_per_hour


def _refused(what: str) -> MetricError:
    return MetricError(
        what, where="U = 1 - n * t_load / 3600", next_step="take fewer switches or a faster load"
    )
