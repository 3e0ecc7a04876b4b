"""The graph of a pipeline as Mermaid text, or drawn into a PNG or SVG file."""

from __future__ import annotations

from pathlib import Path

from ottla.pipeline.definition import Pipeline, Step
from ottla.pipeline.graph import edges, inputs_of, steps_in_order
from ottla.pipeline.problems import PipelineError

_SHAPES = {"source": ("[/", "/]"), "table": ("[(", ")]"), "step": ("[", "]"), "sink": ("([", "])")}
_COLOURS = {"source": "#cfe8ff", "table": "#e8e0ff", "step": "#f2f2f2", "sink": "#d8f5d8"}


def mermaid(pipeline: Pipeline) -> str:
    lines = ["flowchart LR"]
    for name, (kind, label) in _nodes(pipeline).items():
        opening, closing = _SHAPES[kind]
        lines.append(f'  {_plain(name)}{opening}"{label}"{closing}')
    lines += [f"  {_plain(source)} --> {_plain(target)}" for source, target in edges(pipeline)]
    return "\n".join(lines)


def draw(pipeline: Pipeline, path: Path) -> None:
    """By the file's ending. Parts stand in columns by how many steps lie before them."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PipelineError("drawing needs matplotlib", "pip install 'ottla[plot]', or use Mermaid") from None
    nodes = _nodes(pipeline)
    columns = _columns(pipeline)
    width, height = (
        max(columns.values()) + 1,
        max(list(columns.values()).count(each) for each in columns.values()),
    )
    figure = Figure(figsize=(2.8 * width + 0.6, 1.1 * height + 0.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    places: dict[str, tuple[float, float]] = {}
    for column in range(width):
        names = [name for name in nodes if columns[name] == column]
        for row, name in enumerate(names):
            places[name] = (column, (len(names) - 1) / 2 - row)
    boxes = {}
    for name, (kind, label) in nodes.items():
        box = {"boxstyle": "round,pad=0.5", "facecolor": _COLOURS[kind], "edgecolor": "#666666"}
        told = label.replace("<br>", "\n")
        drawn = axes.text(*places[name], told, ha="center", va="center", fontsize=9, bbox=box)
        boxes[name] = drawn.get_bbox_patch()
    for source, target in edges(pipeline):
        arrow = {"arrowstyle": "-|>", "color": "#888888", "patchA": boxes[source], "patchB": boxes[target]}
        axes.annotate("", xy=places[target], xytext=places[source], arrowprops=arrow)
    axes.set_xlim(-0.6, width - 0.4)
    axes.set_ylim(-height / 2 - 0.2, height / 2 + 0.2)
    figure.savefig(path, dpi=130)


def _nodes(pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    """By name: kind and label."""
    nodes = {
        source.name: ("source", f"{source.name}<br>topic {', '.join(source.topics)}")
        for source in pipeline.sources.values()
    }
    nodes |= {
        table.name: ("table", f"{table.name}<br>{table.path.name}") for table in pipeline.tables.values()
    }
    nodes |= {step.name: ("step", f"{step.name}<br>{_what(step)}") for step in pipeline.steps.values()}
    for sink in pipeline.sinks.values():
        nodes[f"sink:{sink.name}"] = ("sink", f"{sink.name}<br>{sink.target.kind}")
    return nodes


def _what(step: Step) -> str:
    return type(step).__name__.removesuffix("Step").lower()


def _columns(pipeline: Pipeline) -> dict[str, int]:
    columns = dict.fromkeys((*pipeline.sources, *pipeline.tables), 0)
    for step in steps_in_order(pipeline):
        columns[step.name] = 1 + max(columns[name] for name in inputs_of(pipeline, step))
    for sink in pipeline.sinks.values():
        columns[f"sink:{sink.name}"] = 1 + columns[sink.input]
    for name in pipeline.tables:  # right before the first step that uses it
        users = [columns[target] for source, target in edges(pipeline) if source == name]
        columns[name] = min(users, default=1) - 1
    return columns


def _plain(name: str) -> str:
    return name.replace(":", "_")
