"""The documentation follows the code: generated pages, names, links."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from docs.generate import COMMAND, PAGES
from docs.screenshots import PICTURES
from longtable import graph
from longtable.graph import CompactionPolicy, Context, build_graph
from tests.support.isolation import opened_by_default

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ALL = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_says_what_the_code_says(name: str) -> None:
    with opened_by_default("process"):
        assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), (
            f"the code has changed: run `{COMMAND}`"
        )


@pytest.mark.parametrize("settings", [Context, CompactionPolicy])
def test_the_docs_document_every_setting(settings: type) -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    missing = [
        field.name for field in dataclasses.fields(settings) if f"| `{field.name}` |" not in page
    ]
    assert not missing


def test_the_docs_document_every_public_name() -> None:
    named = re.findall(
        r"^\| `(\w+)", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(graph.__all__) <= set(named)


def test_the_docs_document_every_environment_variable() -> None:
    page = set(
        re.findall(
            r"^\| `(\w+_\w+)` \|",
            (DOCS / "settings.md").read_text(encoding="utf-8").partition("## Env")[2],
            re.MULTILINE,
        )
    )
    used = {
        name
        for file in (ROOT / "app").rglob("*.py")
        for name in re.findall(r"\bLONGTABLE_[A-Z_]+[A-Z]", file.read_text())
    }
    assert page == used | {"OPENAI_API_KEY"}
    assert page == set(re.findall(r"^#(\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_the_docs_document_every_argument_of_build_graph() -> None:
    table = (
        (DOCS / "embed.md")
        .read_text(encoding="utf-8")
        .partition("| argument |")[2]
        .partition("\n\n")[0]
    )
    heads = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for head in heads for name in re.findall(r"`(\w+)`", head)}
    taken = inspect.signature(build_graph).parameters.values()
    assert documented == {each.name for each in taken if each.kind is each.KEYWORD_ONLY}
    assert len(documented) <= 15


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_attribute_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"\b([A-Z]\w+)\.([a-z]\w+)", page.read_text(encoding="utf-8"))
    for owner, name in named:
        kind = getattr(graph, owner, None)
        assert kind is None or hasattr(kind, name) or name in inspect.get_annotations(kind), (
            f"{owner}.{name}"
        )


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_module_that_is_named_exists(page: Path) -> None:
    rooms = "|".join(each.parent.name for each in ROOT.glob("*/py.typed"))
    for name in re.findall(
        rf"\blongtable\.((?:{rooms})\b[\w.]*\w)", page.read_text(encoding="utf-8")
    ):
        *folders, last = name.split(".")
        if not (
            ROOT.joinpath(*folders, last).is_dir()
            or ROOT.joinpath(*folders, f"{last}.py").is_file()
        ):
            module = (
                ROOT.joinpath(*folders).with_suffix(".py")
                if len(folders) > 1
                else ROOT.joinpath(*folders, "__init__.py")
            )
            assert module.is_file(), name
            assert re.search(rf"\b{last}\b", module.read_text(encoding="utf-8")), name


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page
            assert file.exists(), target
            assert not anchor or anchor in _anchors(file), target


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_pictures_of_the_web_chat_are_small_and_the_first_is_the_readmes() -> None:
    sizes = {picture.name: (DOCS / picture.name).stat().st_size for picture in PICTURES}
    assert sum(sizes.values()) < 400_000
    shown = re.findall(r"!\[[^\]]+\]\((?:docs/)?([\w-]+\.png)\)", (ROOT / "README.md").read_text())
    assert shown[0] == PICTURES[0].name
    page = (DOCS / "web.md").read_text(encoding="utf-8")
    assert all(f"({name})" in page for name in sizes)
