"""Pictures with boxes in files of four kinds: the same boxes from each, and what is wrong with them is told."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import own
import pytest
from PIL import Image as Pillow

from saccade import SaccadeError, png
from saccade.data import boxtable, coco, voc, yolo
from saccade.data.own import own_files
from saccade.data.reader import READERS, ReadRequest, reader_of, told
from saccade.data.skipped import Skipped
from saccade.field.image import Image
from saccade.field.label import Label
from saccade.recipes.read import from_values


class Marks(Image):
    """Stands in a column of boxes: readers ask for its kind alone."""

    kind, endings = "boxes", ()


KINDS = {"source": Image, "boxes": Marks}
FORMS = {"boxes.json": own.box_json, "voc": own.voc, "yolo": own.yolo, "boxes.csv": own.box_table}


def read(path, strict=False, split=None):
    """The rows of a file or folder, and what was left out."""
    skipped = Skipped()
    request = ReadRequest([str(path)], KINDS, "detect", [], skipped, strict, split)
    return list(reader_of([str(path)], request).rows(request)), skipped


def recipe(files, **more):
    model = {"width": 4, "heads": 1, "encoder": 1}
    return from_values({"task": "classify", "data": {"files": files, **more}, "model": model, "train": {"steps": 1}})


@pytest.fixture(params=list(FORMS))
def form(request, tmp_path):
    FORMS[request.param](tmp_path)
    return tmp_path / request.param


def test_every_form_gives_the_same_boxes(form, tmp_path):
    wanted = dict(own.marked(tmp_path / "again"))
    rows, skipped = read(form)
    assert not skipped
    assert {path.name for path, _ in rows} == {*wanted}
    for path, found in rows:
        assert [*found.labels] == [label for label, *_ in wanted[path.name]]
        assert np.allclose(found.corners, np.array([box for _, *box in wanted[path.name]]).reshape(-1, 4), atol=1e-4)
        assert found.frame.tolist() == [0, 0, 40, 32]
        pixels = np.asarray(Pillow.open(path)).astype(int).min(2)
        for left, top, right, bottom in found.corners.round().astype(int):
            assert (pixels[top:bottom, left:right] >= 150).all()
        assert (pixels >= 150).sum() == sum((c - a) * (d - b) for a, b, c, d in found.corners.round().astype(int))


def test_a_picture_without_boxes_is_kept(form):
    last = next(found for path, found in read(form)[0] if path.name == "39.png")
    assert last.labels == ()
    assert last.corners.shape == (0, 4)


def test_what_such_files_are_is_told(form):
    what, held = told([str(form)], KINDS)
    assert held == [("image", "boxes")]
    assert "box" in what
    classify = {"source": Image, "label": Label}
    assert told([str(form)], classify)[1] == [("image", "boxes")], "whatever is asked for"


def test_no_header_is_looked_for_where_the_reader_knows_it(tmp_path):
    own.box_table(tmp_path)
    own.pictures(tmp_path)
    assert not own_files(recipe([str(tmp_path / "boxes.csv")]), KINDS).headed
    assert own_files(recipe([str(tmp_path / "pictures.csv")]), {"source": Image, "label": Label}).headed


def test_the_digest_knows_names_boxes_and_pixels(form):
    digest = next(each.digest for each in READERS if each.fits([form], KINDS))
    first = digest(form)
    assert digest(str(form)) == first
    picture = read(form)[0][0][0]
    content = picture.read_bytes()
    picture.write_bytes(png.encode(np.zeros((32, 40, 3), np.uint8)))
    assert digest(form) != first
    picture.write_bytes(content)
    assert digest(form) == first
    marks = {".json": form, ".csv": form, "": form / "Annotations/03.xml"}[form.suffix]
    marks = form / "labels/val/03.txt" if form.name == "yolo" else marks
    marks.write_text(marks.read_text().replace("2", "3"))
    assert digest(form) != first


def test_a_missing_picture_is_named_and_left_out(form):
    gone = read(form)[0][2][0]
    gone.unlink()
    rows, skipped = read(form)
    if form.name == "yolo":  # whose pictures are what lies in the folder
        assert not skipped
    else:
        assert skipped == {"a picture that is not there": 1}
        assert gone.name in skipped.where("a picture that is not there")
        with pytest.raises(SaccadeError, match="is not there, and it should be a picture; mend it or take it away"):
            read(form, strict=True)
    assert len(rows) == 39


def test_a_file_that_is_no_picture(form):
    broken = read(form)[0][2][0]
    broken.write_bytes(b"none")
    rows, skipped = read(form)
    assert len(rows) == 39
    assert skipped == {"no picture": 1}


def test_boxes_are_of_the_picture_as_a_person_sees_it(tmp_path):
    """A camera that was held upright stores the picture on its side, and says so."""
    exif = Pillow.Exif()
    exif[0x0112] = 6
    Pillow.fromarray(np.zeros((30, 50, 3), np.uint8)).save(tmp_path / "a.jpg", exif=exif)
    table = tmp_path / "a.csv"
    table.write_text("file,label,xmin,ymin,xmax,ymax\na.jpg,x,5,31,25,49\n")
    ((_, found),), skipped = read(table)
    assert found.frame.tolist() == [0, 0, 30, 50]
    assert not skipped
    whole = {"images": [{"id": 1, "file_name": "a.jpg", "width": 50, "height": 30}], "annotations": []}
    (tmp_path / "a.json").write_text(json.dumps({**whole, "categories": []}))
    with pytest.raises(
        SaccadeError, match="has 30 x 50 pixels as a person sees it, and its annotations are of 50 x 30"
    ):
        read(tmp_path / "a.json")


BAD = [  # corners in a picture of 40 x 32, the reason
    ((3, 5, 3, 9), "a box without area"),
    ((9, 5, 3, 9), "a box without area"),
    (("nan", 5, 7, 9), "a box whose corners are no numbers"),
    (("", 5, 7, 9), "a box whose corners are no numbers"),
    ((3, 5, "inf", 9), "a box whose corners are no numbers"),
    (("wide", 5, 7, 9), "a box whose corners are no numbers"),
    ((41, 5, 47, 9), "a box outside its picture"),
    ((-7, 5, -2, 9), "a box outside its picture"),
]


@pytest.mark.parametrize(("corners", "reason"), BAD)
def test_boxes_that_are_none_are_left_out_and_their_picture_stays(tmp_path, corners, reason):
    (tmp_path / "a.png").write_bytes(png.encode(np.zeros((32, 40, 1), np.uint8)))
    cells = ",".join(map(str, corners))
    (tmp_path / "a.csv").write_text(f"file,label,xmin,ymin,xmax,ymax\na.png,x,{cells}\na.png,y,1,2,3,4\n")
    ((_, found),), skipped = read(tmp_path / "a.csv")
    assert found.labels == ("y",)
    assert skipped == {reason: 1}
    assert skipped.where(reason) == "a.csv, line 2"
    with pytest.raises(SaccadeError, match=f"a.csv, line 2: {reason}"):
        read(tmp_path / "a.csv", strict=True)


def test_boxes_that_stick_out_are_cut_off_at_the_edge(tmp_path):
    (tmp_path / "a.png").write_bytes(png.encode(np.zeros((32, 40, 1), np.uint8)))
    (tmp_path / "a.csv").write_text("image,class,x,y,w,h\na.png,x,-3,5,10,100\na.png,y,20.2,2,20.2,30.1\n")
    ((_, found),), skipped = read(tmp_path / "a.csv")
    assert found.corners.tolist() == [[0, 5, 7, 32], [20.2, 2, 40, 32]]
    assert skipped == {"the part of a box that is outside its picture": 1}, "the second one was rounded"


def test_columns_are_known_by_their_names(tmp_path):
    (tmp_path / "a.png").write_bytes(png.encode(np.zeros((32, 40, 1), np.uint8)))
    for head, cells in {
        "filename,width,height,class,xmin,ymin,xmax,ymax": "a.png,40,32,x,3,5,7,11",
        "X1,Y1,X2,Y2,Label,Image": "3,5,7,11,x,a.png",
        "path,category,x,y,width,height": "a.png,x,3,5,4,6",
        "file,split,label,left,top,right,bottom": "a.png,train,x,3,5,7,11",
    }.items():
        (tmp_path / "a.csv").write_text(f"{head}\n{cells}\n")
        (tmp_path / "b.tsv").write_text(f"{head}\n{cells}\n".replace(",", "\t"))
        for each in ("a.csv", "b.tsv"):
            ((_, found),), _ = read(tmp_path / each)
            assert found.labels == ("x",)
            assert found.corners.tolist() == [[3, 5, 7, 11]]
    (tmp_path / "a.csv").write_text("a.png,3,5,7,11,x\n")
    with pytest.raises(
        SaccadeError, match=r"a first line such as file,label,xmin,ymin,xmax,ymax; here it is a\.png, 3"
    ):
        read(tmp_path / "a.csv")


def test_rows_of_one_picture_need_not_stand_together(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(png.encode(np.zeros((32, 40, 1), np.uint8)))
    lines = ["file,label,xmin,ymin,xmax,ymax", "b.png,x,1,2,3,4", "a.png,y,1,2,3,4", "", "b.png,z,5,6,7,8"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    rows, _ = read(tmp_path / "a.csv")
    assert [(path.name, found.labels) for path, found in rows] == [("b.png", ("x", "z")), ("a.png", ("y",))]


OUT = ["../a.png", "/etc/a.png", "b/../../a.png", "C:\\a.png", "", "a\0.png"]


@pytest.mark.parametrize("name", OUT)
def test_names_do_not_lead_out_of_the_folder(tmp_path, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "a.png").write_bytes(png.encode(np.zeros((32, 40, 1), np.uint8)))
    whole = {"images": [{"id": 1, "file_name": name}], "annotations": [], "categories": []}
    (inside / "a.json").write_text(json.dumps(whole))
    with pytest.raises(SaccadeError, match="names are relative to the folder, and stay in it"):
        read(inside / "a.json")
    with (inside / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["file", "label", "x", "y", "w", "h"], [name, "x", 1, 2, 3, 4]])
    if name:
        with pytest.raises(SaccadeError, match="names are relative to the folder, and stay in it"):
            read(inside / "a.csv")


def test_crowds_are_left_out_and_counted(tmp_path):
    own.box_json(tmp_path)
    path = tmp_path / "boxes.json"
    whole = json.loads(path.read_text())
    whole["annotations"][3]["iscrowd"] = 1
    whole["annotations"].append({"id": 999, "image_id": 777, "category_id": 1, "bbox": [1, 2, 3, 4]})
    path.write_text(json.dumps(whole))
    rows, skipped = read(path)
    assert len(rows) == 40
    assert skipped == {"a box of a crowd": 1, "annotations of an image that is not there": 1}
    assert skipped.where("a box of a crowd") == "boxes.json, annotation 3"


JSON = [
    ("{", "is no JSON"),
    ("[]", "is no object"),
    ('{"images": [1], "annotations": [], "categories": []}', "no list 'images' of objects"),
    ('{"images": [], "annotations": []}', "no list 'categories' of objects"),
    ('{"images": [{"id": 1}], "annotations": [], "categories": []}', "the id 1 has no file_name"),
    ('{"images": [{"id": [1]}], "annotations": [], "categories": []}', "id is a number or a name in COCO's form"),
    ('{"images": [], "annotations": [], "categories": []}', "there is no picture in it"),
    ('{"images": [], "annotations": [{"image_id": 1}], "categories": []}', "is not among its images"),
]


@pytest.mark.parametrize(("text", "told"), JSON)
def test_json_that_is_not_coco(tmp_path, text, told):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(SaccadeError, match=told):
        read(tmp_path / "a.json")


@pytest.mark.parametrize("bbox", [None, [1, 2, 3], "1234", [1, 2, "x", 4], [1, 2, 10**400, 4], [1, 2, float("nan"), 4]])
def test_a_bbox_that_is_none(tmp_path, bbox):
    own.box_json(tmp_path)
    whole = json.loads((tmp_path / "boxes.json").read_text())
    whole["annotations"][0]["bbox"] = bbox
    (tmp_path / "boxes.json").write_text(json.dumps(whole))
    rows, skipped = read(tmp_path / "boxes.json")
    assert len(rows) == 40
    assert skipped == {"a box whose corners are no numbers": 1}


def test_a_category_that_nobody_named(tmp_path):
    own.box_json(tmp_path)
    whole = json.loads((tmp_path / "boxes.json").read_text())
    whole["annotations"][0]["category_id"] = 7
    (tmp_path / "boxes.json").write_text(json.dumps(whole))
    with pytest.raises(SaccadeError, match=r"annotation 0: its category_id 7 is not among .*1: wide, 2: tall"):
        read(tmp_path / "boxes.json")


def test_splits_of_a_voc_folder(tmp_path):
    own.voc(tmp_path)
    root = tmp_path / "voc"
    assert voc.splits(root) == ("train", "val", "test")
    found = {split: {path.stem for path, _ in read(root, split=split)[0]} for split in voc.splits(root)}
    assert [len(each) for each in found.values()] == [32, 4, 4]
    assert found["val"] == {"00", "01", "02", "03"}
    supply = own_files(recipe([str(root)]), KINDS)
    assert supply.splits == ("train", "val", "test")
    assert not supply.splits_off
    assert {name: {path.stem for path, _ in supply.rows(name)} for name in supply.splits} == found
    with pytest.raises(SaccadeError, match=r"has splits of its own \(train, val, test\): leave out data.validation"):
        own_files(recipe([str(root)], validation=[str(root)]), KINDS)
    with pytest.raises(SaccadeError, match="give this one folder"):
        own_files(recipe([str(root), str(root)]), KINDS)
    (root / "ImageSets/Main/val.txt").unlink()
    supply = own_files(recipe([str(root)]), KINDS)
    assert supply.splits == ("train", "val", "test")
    parts = {name: {path.stem for path, _ in supply.rows(name)} for name in supply.splits}
    assert parts["train"] | parts["val"] == found["train"], "a share of the training split is split off"
    assert parts["test"] == found["test"]
    (root / "ImageSets/Main/train.txt").rename(root / "ImageSets/Main/trainval.txt")
    assert voc.splits(root) == ("train", "test")
    (root / "ImageSets/Main/trainval.txt").write_text("03 1\n04 -1\nnone 1\n../03 1\n")
    with pytest.raises(SaccadeError, match="stay in it"):
        read(root, split="train")
    (root / "ImageSets/Main/trainval.txt").write_text("03 1\n04 -1\nnone 1\n")
    rows, skipped = read(root, split="train")
    assert [path.stem for path, _ in rows] == ["03", "04"]
    assert skipped == {"annotations that are not there": 1}


def test_xml_beside_pictures(tmp_path):
    own.voc(tmp_path)
    flat = tmp_path / "flat"
    flat.mkdir()
    for each in [*(tmp_path / "voc").rglob("*.xml"), *(tmp_path / "voc").rglob("*.png")]:
        each.rename(flat / each.name)
    assert voc.splits(flat) == ()
    assert len(read(flat)[0]) == 40
    (flat / "07.xml").unlink()
    rows, skipped = read(flat)
    assert len(rows) == 39
    assert skipped == {"a picture without annotations": 1}, "nobody has looked for boxes there"
    (flat / "09.xml").write_text((flat / "09.xml").read_text().replace("09.png", "renamed.jpg"))
    assert len(read(flat)[0]) == 39, "a picture of the same name is the one"
    for split in ("train", "valid"):
        (flat / split).mkdir()
        for each in [*flat.glob("1*.*")] if split == "valid" else [*flat.glob("2*.*")]:
            each.rename(flat / split / each.name)
    assert voc.splits(flat) == ("train", "val")
    assert [path.stem[0] for path, _ in read(flat, split="val")[0]] == ["1"] * 10


LAUGHS = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><annotation>&b;</annotation>'
XML = [
    ("<annotation><object>", "broken XML"),
    ("", "broken XML"),
    ("<annotation>&what;</annotation>", "broken XML"),
    ('<?xml version="1.0" encoding="no-such"?><annotation/>', "broken XML"),
    ("<svg/>", "another kind of XML"),
    (LAUGHS, "XML with a DOCTYPE"),
    ('<!DOCTYPE annotation SYSTEM "file:///etc/passwd"><annotation/>', "XML with a DOCTYPE"),
]


@pytest.mark.parametrize(("text", "reason"), XML)
def test_xml_that_is_not_voc(tmp_path, text, reason):
    own.voc(tmp_path)
    (tmp_path / "voc/Annotations/11.xml").write_text(text)
    rows, skipped = read(tmp_path / "voc")
    assert len(rows) == 39
    assert skipped[reason] == 1
    assert skipped.where(reason) == "Annotations/11.xml"
    for each in (tmp_path / "voc/Annotations").iterdir():
        each.write_text(text)
    with pytest.raises(SaccadeError, match=r"nothing of .* can be read; the first problem: Annotations/00.xml"):
        read(tmp_path / "voc")


def test_parts_of_things_and_lines_of_voc():
    text = """<annotation><size><width>0</width></size>
    <object><name>person</name><part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>
      <bndbox><xmin>3</xmin><ymin>5.5</ymin><xmax>7</xmax><ymax>11</ymax></bndbox></object>
    <object><name>cat</name><bndbox><xmin>3</xmin><ymin>5</ymin><xmax>3</xmax></bndbox></object></annotation>"""
    found = voc.annotation(text.encode(), "a.xml")
    assert found.size == (0, 0)
    assert found.boxes[0] == ("person", (2, 4.5, 7, 11), "a.xml, line 2")
    assert found.boxes[1].place == "a.xml, line 4"
    assert np.isnan(found.boxes[1].corners[3])


NAMES = {
    "names: [wide, tall]": ["wide", "tall"],
    "names: ['wide, or so', \"it's\"]  # two": ["wide, or so", "it's"],
    "names: {0: wide, 1: tall}": ["wide", "tall"],
    "nc: 2\nnames:\n- wide\n- tall\nroboflow:\n  url: x": ["wide", "tall"],
    "names:\n  - wide # so\n\n  - 'tall'\nnc: 2": ["wide", "tall"],
    "path: ../x\nnames:\n  0: wide\n  1: tall thing\ntrain: y": ["wide", "tall thing"],
    "names:\n  1: tall\n  0: wide": ["wide", "tall"],
    "names: [\n  wide,\n  tall,\n]\nnc: 2": ["wide", "tall"],
    "names:\n  - 3: x\n  - tall": None,
}


@pytest.mark.parametrize("text", [each for each in NAMES if NAMES[each]])
def test_names_of_classes(tmp_path, text):
    (tmp_path / "data.yaml").write_text(text + "\n")
    found = yolo.classes(tmp_path)
    assert [found[0], found[1]] == NAMES[text]
    assert len(found) == 2


def test_folders_of_yolo(tmp_path):
    own.yolo(tmp_path)
    root = tmp_path / "yolo"
    assert yolo.splits(root) == ("train", "val")
    assert len(read(root, split="val")[0]) == 6
    assert own_files(recipe([str(root)]), KINDS).splits == ("train", "val")
    (root / "labels/val/02.txt").write_text("0 .5 .5 .1\n\n0 .5 .5 .1 x\n1 .5 .5 .1 .25\n0 .5 .5 0 0.1\n")
    rows, skipped = read(root, split="val")
    assert rows[2][1].labels == ("tall",)
    assert rows[2][1].corners.tolist() == [[18, 12, 22, 20]]
    assert skipped == {"a line that is no box": 1, "a box whose corners are no numbers": 1, "a box without area": 1}
    assert skipped.where("a box without area") == "labels/val/02.txt, line 5"
    for name in ("2", "-1", "1.0", "x"):
        (root / "labels/val/02.txt").write_text(f"{name} .5 .5 .1 .1\n")
        with pytest.raises(SaccadeError, match=r"02.txt, line 1: there is no class .* from 0 to 1"):
            read(root)
    (root / "labels/val/02.txt").write_text("")
    (root / "data.yaml").write_text("nc: 2\n")
    with pytest.raises(SaccadeError, match="names no classes: it should say 'names:"):
        read(root)
    (root / "data.yaml").unlink()
    with pytest.raises(SaccadeError, match=r"has no data.yaml with .* and no classes.txt"):
        read(root)
    (root / "classes.txt").write_text("wide\ntall\n")
    assert len(read(root)[0]) == 40
    around = tmp_path / "around"
    for split, name in (("train", "train"), ("val", "valid")):
        (around / name).mkdir(parents=True)
        for kind in ("images", "labels"):
            (root / kind / split).rename(around / name / kind)
    (root / "classes.txt").rename(around / "classes.txt")
    assert yolo.splits(around) == ("train", "val")
    assert len(read(around, split="train")[0]) == 34
    plain = tmp_path / "plain"
    plain.mkdir()
    for kind in ("images", "labels"):
        (around / "train" / kind).rename(plain / kind)
    (around / "classes.txt").rename(plain / "classes.txt")
    assert yolo.splits(plain) == ()
    assert len(read(plain)[0]) == 34


def test_other_folders_and_files_stay_what_they_are(tmp_path):
    own.photos(tmp_path)
    own.graph(tmp_path)
    assert not voc.fits([tmp_path / "photos"], KINDS)
    assert not yolo.fits([tmp_path / "photos"], KINDS)
    other = {"source": Image, "label": Label}
    assert not coco.fits([tmp_path / "graph.json"], other)
    own.pictures(tmp_path)
    assert not boxtable.fits([tmp_path / "pictures.csv"], other)
    two = Path(tmp_path / "two.csv")
    two.write_text("0.png,[]\n")
    assert not boxtable.fits([two], KINDS), "a table with a row for each picture"
