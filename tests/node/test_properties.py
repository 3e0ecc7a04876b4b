"""Java's .properties format, clause by clause (the documentation of java.util.Properties.load)."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.configs import InvalidSetting
from ottla.node.properties import Property, parse_properties


def pairs(text: str) -> list[tuple[str, str]]:
    return [(found.name, found.value) for found in parse_properties(text)]


@pytest.mark.parametrize("separator", ["=", ":", " ", "\t", "\f", " = ", " : ", "\t=\t", "   "])
def test_every_separator_is_understood(separator: str) -> None:
    assert pairs(f"num.partitions{separator}3") == [("num.partitions", "3")]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_end_is_understood(end: str) -> None:
    assert pairs(f"a=1{end}{end}b=2{end}") == [("a", "1"), ("b", "2")]


def test_comments_and_blank_lines_are_skipped_wherever_they_are_indented() -> None:
    assert pairs("# one\n  ! two\n\t\n   \n a=1#not a comment\n") == [("a", "1#not a comment")]


def test_only_the_first_separator_separates() -> None:
    assert pairs("listeners=PLAINTEXT://:9092,B://h:1=2") == [("listeners", "PLAINTEXT://:9092,B://h:1=2")]


def test_a_name_alone_has_an_empty_value() -> None:
    assert pairs("a\nb=\nc = \n") == [("a", ""), ("b", ""), ("c", "")]


def test_an_empty_name_is_a_name() -> None:
    assert pairs("=x") == [("", "x")]


def test_blanks_at_the_end_belong_to_the_value() -> None:
    assert pairs("a= 1  ") == [("a", "1  ")]


def test_a_backslash_continues_the_line_and_drops_the_indent() -> None:
    assert pairs("a=one,\\\n    two,\\\r\n\tthree\nb=4") == [("a", "one,two,three"), ("b", "4")]


def test_two_backslashes_do_not_continue() -> None:
    assert pairs("a=1\\\\\nb=2") == [("a", "1\\"), ("b", "2")]


def test_a_comment_sign_on_a_continued_line_is_text() -> None:
    assert pairs("a=1,\\\n# 2\n") == [("a", "1,# 2")]


def test_a_comment_is_not_continued() -> None:
    assert pairs("# comment \\\na=1") == [("a", "1")]


def test_a_file_may_end_in_a_continuation() -> None:
    assert pairs("a=1\\") == [("a", "1")]
    assert pairs("\\") == []


def test_escapes() -> None:
    assert pairs(r"a\ b\:c\=d=\t\n\r\f\z\\é\uD83D\uDE00") == [("a b:c=d", "\t\n\r\fz\\é😀")]


def test_letters_beyond_ascii_are_text() -> None:
    assert pairs("broker.rack=Zürich") == [("broker.rack", "Zürich")]


@pytest.mark.parametrize("escape", [r"\u12", r"\u12G4", r"\u", r"\u 123"])
def test_a_broken_unicode_escape_is_refused_with_its_line(escape: str) -> None:
    with pytest.raises(
        InvalidSetting, match=r"^line 3: \\u.* is not valid, expected four hexadecimal digits"
    ):
        parse_properties(f"a=1\n\nb={escape}")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"^line 1: half of a surrogate pair stands alone"):
        parse_properties(r"a=\uD83D")


def test_lines_are_counted_where_a_property_begins() -> None:
    assert parse_properties("# c\na=1\\\n2\n\nb=3") == [Property("a", "12", 2), Property("b", "3", 5)]


def test_a_name_that_is_there_twice_comes_twice() -> None:
    assert pairs("a=1\na=2") == [("a", "1"), ("a", "2")]


def escaped(text: str) -> str:
    """As java.util.Properties.store writes a name (and, more than it must, a value)."""
    text = re.sub(r"[\\ :=#!]", r"\\\g<0>", text)
    for character, escape in (("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r"), ("\f", r"\f")):
        text = text.replace(character, escape)
    return text


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_whatever_is_escaped_comes_back(properties: list[tuple[str, str]]) -> None:
    assert pairs("".join(f"{escaped(name)}={escaped(value)}\n" for name, value in properties)) == properties


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidSetting):
        parse_properties(text)
