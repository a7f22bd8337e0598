"""Tells what a text is: a foreign design, or something else."""

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.actor_graphs.node_list import FORMAT, graph_of_nodes
from dfcompile.actor_graphs.sdf3_form import graph_from_sdf3
from dfcompile.errors import UserError
from dfcompile.host.inputs import parsed_json


def graph_of_text(text: str) -> ActorGraph | None:
    """Return the graph of actors that a text is, XML of SDF3 or a list of nodes; ``None`` if it is something else.

    Raises:
        UserError: it begins as one of them, and is not right; one line.
    """
    begin = text.removeprefix("\ufeff").lstrip()
    if begin.startswith("<"):
        graph = graph_from_sdf3(begin)
    elif begin.startswith("{") and FORMAT in text:
        try:
            value = parsed_json(begin)
        except (ValueError, RecursionError) as error:
            raise UserError(f"json: {error} against a JSON object") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            return None
        graph = graph_of_nodes(value)
    else:
        return None
    if not graph.channels:
        raise UserError(f"graph {graph.name!r}: found no channel against one or more")
    for channel in graph.channels:
        most = 2 * max(channel.read)
        if channel.is_state and channel.tokens >= most:
            raise UserError(
                f"channel {channel.name!r}: found {channel.tokens} tokens against fewer than {most}, with which "
                f"{graph.actors[channel.source].name!r} fires once at a time (an actor is one processing element)"
            )
    _ = graph.firings  # consistent
    return graph
