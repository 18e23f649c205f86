"""Scenes of tracks: files, JSON and arrays; who comes late or leaves early; what is no scene is told in a sentence."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
import torch

from saccade import SaccadeError
from saccade.field.tracks.error import ERRORS, errors, straight
from saccade.field.tracks.futures import Futures, FuturesConfig
from saccade.field.tracks.scene import Sequel, as_json, checked, of_json, sequel_of, sightings, steps_of, tracks_of
from saccade.field.tracks.tracks import Tracks, TracksConfig, origin
from saccade.model.model import Model
from saccade.model.tracks import stance
from saccade.recipe import DecodeConfig
from saccade.task.batch import states_of
from saccade.task.pair import VERBS
from saccade.task.task import Task

LISTS = [[[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]], [None, [3.0, 2.0], [3.0, 1.5]], [[7.0, 7.0], None, None]]
T, S, K = 5, 3, 4


def scenes(*agents, steps=T + S, seed=0):
    draw = np.random.default_rng(seed)
    return [draw.normal(0, 1, (each, 1, 2)) * 9 + draw.normal(0.3, 0.4, (each, steps, 2)).cumsum(1) for each in agents]


def sequels(*agents, seed=0):
    return [Sequel(each[:, :T], each[:, T:]) for each in scenes(*agents, seed=seed)]


def task(rows, model=None, **keys):
    x, y = TracksConfig(embed="tracks(depth=1)"), FuturesConfig(count=K, **keys)
    files = {Tracks.stored("source"): Tracks.made(x, [each.seen for each in rows])}
    files[Futures.stored("future")] = Futures.made(y, rows)
    source = Tracks.load(x, files, "source", "places")
    return Task("foretell", {"source": source}, "future", Futures.load(y, files, "future"))


def model_of(made, **keys):
    import saccade

    torch.manual_seed(3)
    config = saccade.ModelConfig(width=12, heads=3, hidden=17, encoder=2, pair=7, pair_updates="none", **keys)
    return Model(made.configure(config)).double().eval()


def table(scene, names="abcdefgh", apart=10):
    rows = ["frame,agent,x,y"]
    for step in range(scene.shape[1]):
        for agent, place in enumerate(scene[:, step]):
            if np.isfinite(place).all():
                rows.append(f"{apart * step},{names[agent]},{place[0]!r},{place[1]!r}".replace("np.float64", ""))
    return "\n".join(rows).replace("(", "").replace(")", "")


def test_files_json_and_arrays_are_the_same_scene(tmp_path):
    wanted = tracks_of(LISTS)
    (tmp_path / "a.json").write_text(json.dumps(LISTS))
    (tmp_path / "b.json").write_text(json.dumps({"tracks": LISTS}))
    (tmp_path / "a.csv").write_text(table(wanted, "caz"))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(table(wanted).replace(",", "\t").encode()))
    np.savez(tmp_path / "a.npz", tracks=wanted)
    held = io.BytesIO()
    np.save(held, wanted)
    raws = [tmp_path / "a.json", tmp_path / "b.json", tmp_path / "a.npz", held.getvalue(), wanted, {"tracks": LISTS}]
    for raw in [*raws, json.dumps(LISTS).encode()]:
        assert np.array_equal(tracks_of(raw), wanted, equal_nan=True)
    for name in ("a.csv", "a.txt.gz"):  # agents come in the order in which they appear
        assert Tracks.digest(tracks_of(tmp_path / name)) == Tracks.digest(wanted)
    assert np.array_equal(of_json(as_json(wanted), "this"), wanted, equal_nan=True)


BAD = {
    "[]": "no agents",
    "[[], []]": "no steps",
    "[[[0, 1]], [null]]": "agent 2 is at no step",
    '[[[0, "nan"]]]': r"agent 1 is at \[0, 'nan'\] at step 1",
    '[["nan", [0, 1]]]': "a place is two numbers",
    "[[[0, 1], [2, Infinity]]]": "agent 1 is infinitely far at step 2",
    "[[[0, 1], [2, NaN]]]": "a number of agent 1 is missing at step 2",
    "[[[0, 1]], [[0, 1], [1, 2]]]": "all tracks have as many steps",
    "[[[0, 1]], 5]": "all tracks have as many steps",
    "[[[0, 1, 2, 3]]]": "a place is two numbers",
    "[[[0, 1], [0, 1, 2]]]": "a place is two numbers",
    "[[[0, 1" + "0" * 400 + "]]]": "too large",
    '{"scene": []}': "no 'tracks'",
    "[[[0, 1]": "no JSON",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_scene_is_told(text):
    with pytest.raises(SaccadeError, match=BAD[text]) as found:
        of_json(text, "this")
    assert "\n" not in str(found.value)


TABLES = {
    "0,a,1,2\n10,a,1,3\n25,a,1,4\n": "frame 25 is no whole number of steps of 10",
    "0,a,1,2\n10,a,1,3\n10,a,1,4\n": "lines 2 and 3: agent a is there twice in frame 10",
    "0,a,1,2\n10,a,nan,3\n": "line 2: 'nan' is no finite number",
    "0,a,1,2\n10,a,inf,3\n": "line 2: 'inf' is no finite number",
    "0,a,1,2\n10,a,1\n": "line 2: 3 cells, where others have 4",
    "0,a,1\n": "a line is frame, agent, x, y",
    "frame,agent,x,y\n": "has no rows",
}


@pytest.mark.parametrize("text", TABLES)
def test_what_is_no_table_is_told(text, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(SaccadeError, match=TABLES[text]):
        tracks_of(tmp_path / "a.csv")


def test_frames_in_which_nobody_is_there_are_steps(tmp_path):
    (tmp_path / "a.csv").write_text("6,3,0,0\n12,3.0,1,0\n36,4,5,5\n")
    seen = sightings(tmp_path / "a.csv")
    assert steps_of(seen, "a")[0].tolist() == [0, 1, 5]
    assert seen.agents.tolist() == [0, 0, 1]


def test_another_number_of_steps():
    made = task(sequels(3, 2))
    field = made.x["source"]
    (short,) = field.encode([scenes(2, steps=T - 2)[0]])["seen"]
    assert short.tolist() == [[False] * 2 + [True] * (T - 2)] * 2
    with pytest.raises(SaccadeError, match=f"has {T + 1} steps, and the model was made for {T}: give the last {T}"):
        field.encode([scenes(2, steps=T + 1)[0]])
    with pytest.raises(SaccadeError, match="a place has 2 numbers here; this scene's have 3"):
        field.encode([np.zeros((1, T, 3))])


def test_a_report_tells_who_comes_and_goes(tmp_path):
    from saccade.data import corpus

    scene = scenes(4)[0]
    scene[0, :2] = scene[1, T - 1 :] = scene[2, T + 1 :] = np.nan
    rows = [Sequel(scene[:, :T], scene[:, T:])]
    made = task(rows)
    made_of = corpus.build(tmp_path / "c", [(rows[0].seen, rows[0])], made.fields, key="k")
    assert "1 appear and 1 leave midway" in made.x["source"].report(made_of.column("source"))
    assert "3 of 4 agents are foretold for 3 steps, 1 of them leave midway" in made.target.report(
        made_of.column("future")
    )


def test_an_origin_is_exact():
    places = scenes(3)[0] + [512_345.678, 5_412_345.678]
    centre = origin(places, np.ones(places.shape[:2], bool))
    assert np.float32(centre).tolist() == centre.tolist()
    assert np.abs((places - centre).astype(np.float32).astype(np.float64) + centre - places).max() < 1e-5


def test_straight_on():
    seen = np.array([[[0.0, 0], [2, 1], [4, 2]], [[0, 0], [np.nan] * 2, [4, 2]], [[np.nan] * 2] * 2 + [[5, 5]]])
    wanted = [[[6, 3], [8, 4]], [[6, 3], [8, 4]], [[5, 5], [5, 5]]]
    assert straight(seen, 2).tolist() == wanted
    assert np.isnan(straight(np.array([[[0.0, 0], [np.nan] * 2]]), 2)).all()


def test_errors_by_loops():
    """Of the likeliest and of the best, over the steps that are known, of those who were seen last."""
    (sequel,) = sequels(4)
    sequel.future[1, 1:] = np.nan
    sequel.seen[2, -1] = np.nan
    sequel.seen[3, 0] = np.nan
    ways = np.random.default_rng(1).normal(0, 3, (4, K, S, 2)).cumsum(2)
    said = [{"futures": each.tolist(), "probabilities": [1 / K] * K} for each in ways]
    for whole, agents in ((False, (0, 1, 3)), (True, (0,))):
        rows = {name: [] for name in ERRORS}
        for agent in agents:
            steps = [s for s in range(S) if np.isfinite(sequel.future[agent, s]).all()]
            apart = [[np.hypot(*(way[s] - sequel.future[agent, s])) for s in steps] for way in ways[agent]]
            rows["ade"].append(np.mean(apart[0]))
            rows["ade_best"].append(min(map(np.mean, apart)))
            if steps[-1] == S - 1:
                rows["fde"].append(apart[0][-1])
                rows["fde_best"].append(min(each[-1] for each in apart))
        found = errors(said, sequel, whole=whole)
        for number, name in enumerate(ERRORS):
            assert found[2 * number : 2 * number + 2] == pytest.approx((sum(rows[name]), len(rows[name])))


def test_the_loss_by_loops():
    rows = sequels(3, 2)
    rows[0].future[1, 1:] = np.nan
    rows[0].seen[2, -1] = np.nan
    made = task(rows, share=0.3, spread=0.2)
    model = model_of(made)
    corpus = {"source": [each.seen for each in rows], "future": rows}
    taken = {name: made.fields[name].encode(raws) for name, raws in corpus.items()}
    from saccade.data.rows import Picked

    batch = made.batch(Picked(taken))
    assert batch.counts == {"displacement": 4, "future": 4}
    terms = made.target.loss(model, states_of(model, batch), batch.y, learning=True)
    results = made.predict(model, [each.seen for each in rows], DecodeConfig())
    away, surprise, unit = 0.0, 0.0, made.target.shape.unit
    for row, result in zip(rows, results, strict=True):
        for agent, told in enumerate(result.value):
            known = np.isfinite(row.future[agent]).all(1)
            if told is None or not known.any():
                continue
            apart = (
                np.linalg.norm(np.array(told["futures"])[:, known] - row.future[agent][known], axis=2).mean(1) / unit
            )
            away += 0.7 * apart.min() + 0.3 * apart.mean()
            share = np.exp(-(apart - apart.min()) / 0.2)
            surprise -= (share / share.sum() * np.log(told["probabilities"])).sum()
    assert results[0].value[2] is None
    assert float(terms["displacement"].sum.detach()) == pytest.approx(away, rel=1e-3)
    assert float(terms["future"].sum.detach()) == pytest.approx(surprise, rel=1e-3)


def test_what_is_told_turns_and_moves_with_the_scene():
    """A scene that is turned, moved and reordered has its futures turned, moved and reordered."""
    (sequel,) = sequels(5, seed=4)
    made = task(sequels(5, 3, 4))
    model = model_of(made)
    angle, order = 0.7, [3, 1, 4, 0, 2]
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    one, other = made.predict(model, [sequel.seen, (sequel.seen @ turn + [70, -30])[order]], DecodeConfig())
    for new, old in enumerate(order):
        ways = np.array(one.value[old]["futures"]) @ turn + [70, -30]
        assert np.abs(np.array(other.value[new]["futures"]) - ways).max() < 2e-3
        assert other.value[new]["probabilities"] == one.value[old]["probabilities"]


def test_x_and_y_are_augmented_together():
    """After any augmentation but a larger scale, the futures are as far from straight on as before."""
    rows = sequels(4, 2)
    rows[0].seen[1, :2] = rows[0].future[2, 1:] = np.nan
    made = task(rows, augment="turn(180) mirror(0.5)")
    taken = {"source": made.x["source"].encode([each.seen for each in rows]), "future": made.target.encode(rows)}
    from saccade.data.rows import Picked

    plain, moved, again = (
        made.batch(Picked(taken), None if seed is None else np.random.default_rng(seed)) for seed in (None, 7, 7)
    )

    def off(batch):
        x, y = batch.x["source"].values, batch.y.values
        assert torch.equal(x["places"], y["places"])
        found = stance(x["places"].double(), x["seen"], True)
        away = found.inwards(y["future"].double() - found.here.unsqueeze(2) - found.velocity.unsqueeze(2))
        return (away.norm(dim=3) * y["known"], x["places"])

    assert torch.allclose(off(plain)[0], off(moved)[0], atol=1e-4)
    assert not torch.allclose(off(plain)[1], off(moved)[1], atol=0.1)
    assert torch.equal(off(moved)[1], off(again)[1]), "the same draw gives the same scene"
    unseen = ~plain.x["source"].values["seen"]
    assert not moved.x["source"].values["places"][unseen].any()


@pytest.mark.parametrize("augment", ["jitter(0.1)", "turn(200)", "mirror(2)", "twirl"])
def test_an_augmentation_that_means_nothing(augment):
    with pytest.raises(ValueError, match=r"augmentation|turn|mirror"):
        FuturesConfig(augment=augment)


def test_who_is_alone_or_still():
    made = task([*sequels(3), Sequel(np.zeros((2, T, 2)), np.zeros((2, S, 2)))])
    model = model_of(made)
    still, alone = np.zeros((2, T, 2)), scenes(1, steps=T)[0]
    for result in made.predict(model, [still, alone, alone[:, -1:]], DecodeConfig()):
        assert np.isfinite(np.array(result.value[0]["futures"])).all()
        assert np.diff(result.value[0]["probabilities"]).max(initial=-1) <= 0
        assert sum(result.value[0]["probabilities"]) == pytest.approx(1, abs=1e-3)


def test_futures_need_tracks():
    import saccade

    y = task(sequels(2)).target
    with pytest.raises(SaccadeError, match="futures are told of tracks"):
        y.fits(saccade.ModelConfig(width=8, heads=2, encoder=1, embed="nodes"))
    assert "foretell" in VERBS


def test_what_came_belongs_to_the_same_agents():
    with pytest.raises(SaccadeError, match="seen are 3 agents with 2 numbers a place, and the future has 1"):
        sequel_of({"seen": LISTS, "future": [[[0, 1]]]})
    with pytest.raises(SaccadeError, match="alike in the steps"):
        Futures.made(FuturesConfig(), [*sequels(2), Sequel(checked(LISTS, "a"), checked(LISTS, "a"))])
    gone = sequels(2)[0]
    gone.seen[:, -1] = np.nan
    with pytest.raises(SaccadeError, match="there is no future"):
        Futures.made(FuturesConfig(), [gone])


def test_the_side_holds_the_way_and_what_is_told():
    from saccade.look.look import look

    made = task(sequels(3, 4))
    model = model_of(made).float()
    scene = sequels(3)[0].seen
    scene[1, -1] = np.nan
    seen = look(made, model, scene, DecodeConfig())
    side = seen.sides["scene"]
    assert side.kind == "tracks"
    assert [each is None for each in side.shown["futures"]] == [False, True, False]
    left, below, size = side.shown["frame"]
    for agent, track in enumerate(side.shown["tracks"]):
        for step, place in enumerate(track):
            if place is not None:
                back = np.array([place[0] * size + left, (1 - place[1]) * size + below])
                assert np.abs(back - scene[agent, step]).max() < 1e-4 * size
    assert [layer.name.split(".")[0] for layer in seen.layers] == ["encoder"] * 2, "layers over time are inside a unit"
