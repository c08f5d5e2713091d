"""The options of `simulate`, `sweep` and `Trace`, one keyword each. Type checkers, editors and `help` read them here."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypedDict, TypeVar, Union, get_type_hints

Text = Union[str, None]
Number = Union[int, str, None]
Switch = Union[bool, None]
List = Union[str, Sequence[str], None]
Swept = Union[str, int, float, bool, Iterable[Union[str, int, float, bool]], None]
"""A value, a list of values, or a range in words: `"1%..5%/2%"`, `"4k..1m/x2"`, `"4m..64g/log5"`."""


class TraceOptions(TypedDict, total=False):
    """How a workload is read."""

    format: Annotated[Text, "the trace's format, if it does not follow from the contents (`formats()` lists them)"]
    device: Annotated[Number, "the device to take from a trace of several; the busiest by default"]
    columns: Annotated[List, "`csv`: the table's columns in order, from time, op, offset, size, device; `_` for one to skip"]
    units: Annotated[List, "`csv`: units of those columns, as in `us,0=read 1=write,B,B`; seconds and bytes by default"]
    action: Annotated[Text, "`blkparse`, `blktrace`: the action that is the request: Q, D or C"]
    read_flag: Annotated[Number, "`disksim`: the value of the lowest bit of the flags that means a read; 1 by default"]
    time_unit: Annotated[Text, "`csv`, `disksim`, `cloudphysics-csv`: unit of the times: s, ms, us, 100ns, ns"]
    decimal: Annotated[Text, "`csv`, `wpa`: decimal mark of the numbers: point or comma"]
    all: Annotated[Text, "`csv`: operation of all requests of a table without a column of operations: reads or writes"]
    skip_malformed: Annotated[Union[bool, str, None], "count malformed records and continue; more than half is an error but for `\"all\"`"]
    seed: Annotated[Number, "seed of a generator; it replaces the one in its words"]
    limit: Annotated[Number, "take only this many requests, from the first"]


class SimulateOptions(TraceOptions, total=False):
    """How a workload is read, and how it is run."""

    baseline: Annotated[Text, "the drive to compare with; for each drive the conventional one of like geometry by default"]
    no_baseline: Annotated[Switch, "run no baseline"]
    fit: Annotated[Text, "treatment of a workload that reaches past the end of the drive: grow, wrap, scale or error"]
    arrival: Annotated[Text, "arrival process of requests: fixed-queue, closed, open or flat-out"]
    queue: Annotated[Number, "largest number of outstanding requests"]
    schedule: Annotated[Text, "order in which waiting requests are served: fifo, elevator or sptf; the profile's by default"]
    write_cache: Annotated[Number, "volatile write cache: bytes, a size such as `\"64MiB\"`, or `\"off\"`; the profile's by default"]
    read_ahead: Annotated[Number, "read look-ahead: bytes, a size, or `\"off\"`; the profile's by default"]
    warmup: Annotated[Number, "requests served before measuring begins"]
    window: Annotated[Text, "width, in simulated time, of the windows in which completions are counted; `\"1s\"` by default"]
    seeds: Annotated[Number, "number of runs of a generator with different seeds; above 1, the results have means and 95 % intervals"]
    check: Annotated[Switch, "track the contents of every physical sector, and prove that no live sector is lost"]
    out: Annotated[Any, "write the result files into this folder"]
    per_io: Annotated[Switch, "keep one row per request, as `results.ios`"]
    plans: Annotated[Switch, "keep every step on the medium, as the file `results.plans`"]
    explain: Annotated[Number, "state the causes of this many requests with the longest latencies, as `results.explain()`"]
    trace_events: Annotated[Any, "write the events of all drives into this file, for the viewer of Perfetto"]
    from_: Annotated[Text, "with `trace_events`: the simulated time from which on events are kept, such as `\"90s\"`"]
    to: Annotated[Text, "with `trace_events`: the simulated time up to which events are kept"]
    trace_events_size: Annotated[Number, "with `trace_events`: the largest size of the file; `\"256MiB\"` by default"]
    jobs: Annotated[Number, "drives simulated at once; the number of cores by default"]


class SweepOptions(TypedDict, total=False):
    """The options of `simulate` that can be swept."""

    format: Swept
    device: Swept
    columns: Swept
    units: Swept
    action: Swept
    read_flag: Swept
    time_unit: Swept
    decimal: Swept
    all: Swept
    skip_malformed: Swept
    seed: Swept
    limit: Swept
    baseline: Swept
    fit: Swept
    arrival: Swept
    queue: Swept
    schedule: Swept
    write_cache: Swept
    read_ahead: Swept
    warmup: Swept
    window: Swept
    seeds: Swept
    check: Swept


Call = TypeVar("Call", bound=Callable[..., Any])


def names(options: Any) -> list[str]:
    """The names of these options, in order."""
    return list(get_type_hints(options))


def keywords(options: Any) -> Callable[[Call], Call]:
    """Lists `options` in the signature and in the help of a function that takes them as `**options`."""

    def listed(call: Call) -> Call:
        helps = {name: hint.__metadata__[0] for name, hint in get_type_hints(SimulateOptions, include_extras=True).items()}
        hints = get_type_hints(options)
        signature = inspect.signature(call)
        kept = [part for part in signature.parameters.values() if part.kind is not inspect.Parameter.VAR_KEYWORD]
        kind = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in hints.items()]
        setattr(call, "__signature__", signature.replace(parameters=kept + added))
        if isinstance(call, type):
            instance = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
            setattr(vars(call)["__init__"], "__signature__", signature.replace(parameters=[instance, *kept, *added]))
        # Python 3.13 removes the common indentation of a docstring, older versions keep it.
        mark = re.search(r"^( *)\*\*options: .*$", call.__doc__ or "", re.MULTILINE)
        assert mark, "the place of the options in the help"
        begin, next_ = mark[1], mark[1] + " " * 4
        lines = [textwrap.fill(f"{name}: {helps[name]}.", 126, initial_indent=begin, subsequent_indent=next_) for name in hints]
        call.__doc__ = mark.string[: mark.start()] + "\n".join(lines) + mark.string[mark.end() :]
        return call

    return listed
