"""Goal: probe, validate and fit give the program's documents. Method: the program run beside each."""

import json

import imbrex
import pytest


def test_probe_is_the_programs(run_program):
    words = ["probe", "sim:cmr-7200", "--test", "rotation", "--test", "type", "--json"]
    assert imbrex.probe("sim:cmr-7200", tests=["rotation", "type"]) == json.loads(run_program(*words))
    with pytest.raises(ValueError, match="no test is called 'x'.*one of"):
        imbrex.probe("sim:cmr-7200", tests=["x"])
    with pytest.raises(ValueError, match="'type' writes: it destroys the data on /dev/null.*--destroy-data"):
        imbrex.probe("/dev/null", tests=["type"])
    with pytest.raises(ValueError, match="budget = soon: expected a time"):
        imbrex.probe("sim:cmr-7200", budget="soon")


def test_validate_and_fit_are_the_programs(tmp_path, run_program):
    words = "rw=randread,bs=4k,size=10GiB,number_ios=400"
    imbrex.simulate(words, "cmr-7200", no_baseline=True, per_io=True, out=tmp_path)
    ios = str(tmp_path / "ios.parquet")
    told = json.loads(run_program("validate", ios, "--drive", "cmr-5900", "--json"))
    assert imbrex.validate(ios, "cmr-5900") == told and told["format"]
    fitted = imbrex.fit(ios, "cmr-5900")
    toml = fitted.pop("toml")
    assert fitted == json.loads(run_program("fit", ios, "--from", "cmr-5900", "--json"))
    (tmp_path / "fitted.toml").write_text(toml)
    assert imbrex.simulate(words, str(tmp_path / "fitted.toml"), no_baseline=True).drives[0]["completed"] == 400
    with pytest.raises(imbrex.ImbrexError, match="nothing-there"):
        imbrex.validate("nothing-there", "cmr-5900")
