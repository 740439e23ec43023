"""`manyseeds dashboard`: a W&B workspace and a W&B report of a study, whose names follow from it, so that the same command updates them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results.dashboards.dashboard_layout import Content, content_of, report, spec, title, view_name, workspace
from results.dashboards.publish import connect, project
from results.errors import StudyError
from results.output import output_folder
from results.store.tables import Store


def show_dashboard(store: Store, entity: str | None, out: str | None, say: Callable[[str], None]) -> None:
    """Create or update both and print their addresses; with `out`, write them there as JSON and ask no server.

    Raises ValueError where wandb-workspaces is missing, nobody is logged in, or W&B lacks the project or refuses.
    """
    content = content_of(store)
    specs = {kind: spec(build(content)) for kind, build in (("workspace", workspace), ("report", report))}
    if out is not None:
        for kind, text in specs.items():
            data = json.dumps(json.loads(text), indent=1, sort_keys=True).encode()
            say(str(output_folder(Path(out).absolute()).write(f"{content.study}-{kind}.json", data)))
        return
    with connect() as api:
        owner = entity or str(api.default_entity)
        for kind, text in specs.items():
            say(_save(api, owner, content, kind, text))


_FIND = """query View($entity: String, $project: String, $type: String, $name: String) {
  project(name: $project, entityName: $entity) { allViews(viewType: $type, viewName: $name) { edges { node { id name } } } }
}"""
_UPSERT = """mutation UpsertView($id: ID, $entity: String, $project: String, $type: String, $name: String, $title: String, $about: String,
  $spec: String!) {
  upsertView(input: {id: $id, entityName: $entity, projectName: $project, type: $type, name: $name, displayName: $title,
    description: $about, spec: $spec, createdUsing: WANDB_SDK}) { view { id name } inserted }
}"""


def _save(api: Any, entity: str, content: Content, kind: str, text: str) -> str:
    """Save a workspace or report, replacing the view of the same name; returns its address."""
    from wandb_workspaces._graphql import execute_graphql, get_app_url

    name = view_name(content)
    where = {"entity": entity, "project": project(), "type": "project-view" if kind == "workspace" else "runs"}
    where |= {"name": f"nw-{name}-v" if kind == "workspace" else name}
    found_project = execute_graphql(api, _FIND, where).get("project")
    if found_project is None:
        raise StudyError(
            f"W&B has no project {entity}/{project()}: publish the study first, manyseeds publish STORE {content.study} --mode online"
        )
    ids = [edge["node"]["id"] for edge in found_project["allViews"]["edges"] if edge["node"]["name"] == where["name"]]
    values = where | {"id": ids[0] if ids else None, "title": title(content), "about": content.question, "spec": text}
    view = execute_graphql(api, _UPSERT, values)["upsertView"]["view"]
    address = f"{get_app_url(api).rstrip('/')}/{entity}/{project()}"
    return f"{address}?nw={name}" if kind == "workspace" else f"{address}/reports/{content.study}--{view['id']}"
