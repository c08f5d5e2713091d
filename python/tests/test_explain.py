"""The causes of latencies, and the time line of a run.

Goal: what Python gives is what the run was. Method: parts are summed and compared with the rows of requests; the file of events
is decoded with Perfetto's own classes.
"""

import pickle
from collections import defaultdict

import pytest

import imbrex

WORDS = "rw=randwrite,bs=64k,size=256m,number_ios=3000,seed=5"
DRIVE = "emulated-smr-1"
BEGIN, END, INSTANT = 1, 2, 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("events") / "run.perfetto-trace"
    drive = f"{DRIVE}:region_size=4MiB,cache_size=64MiB"
    results = imbrex.simulate(WORDS, drive, no_baseline=True, explain=12, per_io=True, trace_events=path, write_cache="off")
    return results, path


def test_the_parts_of_each_request_sum_to_its_latency(run):
    results, _ = run
    rows = list(results.explain(worst=5))
    latency = {row["sequence"]: row["complete_ns"] - row["issue_ns"] for row in results.ios if row["sequence"] >= 0}
    longest = sorted(latency.values(), reverse=True)[:5]
    sums = defaultdict(int)
    for row in rows:
        sums[row["rank"], row["request"]] += row["duration_ns"]
        assert row["latency_ns"] == latency[row["request"]]
    assert [sums[key] for key in sorted(sums)] == longest
    assert all(sums[key] == latency[key[1]] for key in sums)
    cleaning = [row for row in rows if row["cause"] == "cleaning"]
    assert cleaning and all(row["conventional"] == 0 and "full" in row["of"] for row in cleaning)
    assert all(row["first_request"] <= row["last_request"] <= row["request"] for row in cleaning)


def test_results_that_were_pickled_explain_the_same(run):
    results, _ = run
    again = pickle.loads(pickle.dumps(results))
    assert again.explain(worst=3).to_dict() == results.explain(worst=3).to_dict()
    assert len(results.explain(worst=0)) == 0


def test_results_without_causes_say_how_to_get_them():
    results = imbrex.simulate("rw=randread,bs=4k,number_ios=10,size=1m", "cmr-7200")
    with pytest.raises(AttributeError, match="explain=10"):
        results.explain()


def test_options_of_events_need_a_file():
    with pytest.raises(ValueError, match="--from does not apply"):
        imbrex.simulate("rw=randread,bs=4k,number_ios=10,size=1m", "cmr-7200", from_="1s")


def slices_of(path):
    """The slices of each track: name, begin, end, depth, flows, place in the file. Fails if slices are not nested."""
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = trace_pb2.Trace()
    trace.ParseFromString(path.read_bytes())
    names, parents, open_, slices = {}, {}, defaultdict(list), defaultdict(list)
    for order, packet in enumerate(trace.packet):
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
            parents[packet.track_descriptor.uuid] = packet.track_descriptor.parent_uuid
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        assert track in names
        if event.type == BEGIN:
            assert not open_[track] or open_[track][-1][1] <= packet.timestamp
            open_[track].append((event.name, packet.timestamp, list(event.flow_ids), order))
        elif event.type == END:
            name, begin, flows, first = open_[track].pop()
            assert begin <= packet.timestamp
            slices[track].append((name, begin, packet.timestamp, len(open_[track]), flows, first))
        else:
            assert event.type == INSTANT
    assert not any(open_.values()), "every slice ends"
    drive = next(uuid for uuid, name in names.items() if name.startswith("imbrex "))
    assert all(parents[uuid] == drive for uuid in names if uuid != drive)
    return names, slices


def test_the_file_of_events_has_the_run_as_nested_slices(run):
    results, path = run
    names, slices = slices_of(path)
    by_name = defaultdict(list)
    for track, found in slices.items():
        # Slices of one depth do not overlap.
        for depth in range(3):
            level = sorted((begin, end) for _, begin, end, at, *_ in found if at == depth)
            assert all(one[1] <= other[0] for one, other in zip(level, level[1:]))
        by_name[names[track]] += found
    latency = {row["sequence"]: row["complete_ns"] - row["issue_ns"] for row in results.ios if row["sequence"] >= 0}
    requests = [found for found in by_name["requests"] if found[3] == 0]
    assert len(requests) == len(latency)
    assert sum(end - begin for _, begin, end, *_ in requests) == sum(latency.values())
    # The operations and their stretches take the same time.
    actuator = by_name["actuator"]
    assert sum(e - b for _, b, e, depth, *_ in actuator if depth == 0) == sum(e - b for _, b, e, depth, *_ in actuator if depth == 1)
    cleaning = sum(end - begin for name, begin, end, depth, *_ in actuator if depth == 1 and name.startswith("cleaning"))
    assert cleaning == results.drives[0]["service_ns"]["cleaning"]


def test_flows_lead_from_cause_to_effect(run):
    _, path = run
    names, slices = slices_of(path)
    at = defaultdict(list)
    for track, found in slices.items():
        for name, begin, _, _, flows, order in found:
            for flow in flows:
                at[flow].append((begin, order, names[track], name))
    assert at
    for flow, places in at.items():
        # A viewer follows a flow in order of time, and of the file where times are equal.
        tracks = [track for _, _, track, _ in sorted(places)]
        assert len(places) >= 2, f"flow {flow} leads nowhere: {places}"
        assert tracks[0] in ("requests", "cleaning"), places
        assert "actuator" in tracks, places
