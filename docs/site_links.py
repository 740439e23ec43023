"""Links of the pages on the site: those out of docs/ lead to the source on the web, or are plain text where that has no address.

The variable SOURCE_URL is the address of the repository's root at one commit; the workflow that publishes the site sets it.
"""

import os
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    folder = Path(config.docs_dir, page.file.src_uri).parent
    root = Path(config.config_file_path).parent

    def replace(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        path = (folder / target).resolve()
        if "://" in target or not path.exists() or (path.is_file() and path.is_relative_to(config.docs_dir)):
            return link[0]
        if "SOURCE_URL" not in os.environ:
            return text
        return f"[{text}]({os.environ['SOURCE_URL']}/{path.relative_to(root).as_posix()}{link[3] or ''})"

    return LINK.sub(replace, markdown)
