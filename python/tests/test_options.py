"""The options of the calls: what signatures, help and types list is what the calls take."""

import inspect
import pydoc

import pytest

import imbrex
from imbrex import _options, _words

SMALL = "rw=randread,bs=4k,number_ios=10,size=1m"
OF_TRACES = ["format", "device", "columns", "units", "action", "read_flag", "time_unit", "decimal", "all", "skip_malformed", "seed", "limit"]


def keywords(call):
    """The options in a signature: what has no place of its own in the call."""
    parts = inspect.signature(call).parameters
    assert not any(part.kind is part.VAR_KEYWORD for part in parts.values()), "an editor completes no **options"
    return [name for name, part in parts.items() if part.kind is part.KEYWORD_ONLY and part.default is None]


def test_signatures_and_help_list_the_options_of_the_command_line():
    names = list(_words.NAMES)
    assert sorted(set(keywords(imbrex.simulate)) - {"progress"}) == sorted(names)
    assert sorted(set(keywords(imbrex.Trace)) - {"progress"}) == sorted(OF_TRACES)
    not_swept = {"no_baseline", "per_io", "plans", "explain", "trace_events", "from_", "to", "trace_events_size"}
    assert sorted(set(keywords(imbrex.sweep)) - {"progress", "client"}) == sorted(set(names) - not_swept)
    for call in (imbrex.simulate, imbrex.Trace, imbrex.sweep):
        text = pydoc.plain(pydoc.render_doc(call))
        assert "**options" not in text
        for name in keywords(call):
            assert text.count(f"{name}: ") >= 1, (call, name)


def test_an_option_that_a_call_does_not_take_is_refused():
    with pytest.raises(TypeError, match="no option is called 'queue': expected one of action, all"):
        imbrex.Trace(SMALL, queue=3)
    with pytest.raises(TypeError, match="no option is called 'per_io'"):
        imbrex.sweep(SMALL, "cmr-7200", per_io=True)
    with pytest.raises(TypeError, match="did you mean 'write_cache'"):
        imbrex.simulate(SMALL, "cmr-7200", writecache=3)


def test_every_option_reaches_the_simulator():
    """Expected: a value that no option takes is refused by the option's own name."""
    for name in _options.names(_options.SimulateOptions):
        if name in ("out", "trace_events", "baseline", "columns", "units", "device"):
            continue
        with pytest.raises((ValueError, TypeError), match=name.rstrip("_").replace("_", "[-_]")):
            imbrex.simulate(SMALL, "cmr-7200", **{name: "no such value"})
