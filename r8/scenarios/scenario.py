"""What a scenario declares of itself: one file `test_<report>_<question>.py`, one `SCENARIO`.

`nox -s reproduce-<report>` finds the file by its name. The docstring says what is asked, `SCENARIO`
says which table of a site file plans it and which roles its arms may have, and the two tests of
`r8.scenarios.cells` measure and judge it. How much load it puts on a machine is the site's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from r8.errors import SiteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.site.file import LoadedSite
    from r8.roles import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One question that is asked of a site."""

    name: str  # as site files, claims and runs name it
    table: Literal["scenarios", "transfers"]  # of the site file: with a KV engine, or without
    roles: tuple[Role, ...]  # that its arms may have: what it compares

    def require(self, loaded: LoadedSite, arms: Sequence[str]) -> None:
        """Refuse a plan in the wrong table, and arms whose role this scenario does not compare.

        Raises:
            SiteError: naming the table, or every such arm.

        """
        site = loaded.site
        if self.name not in getattr(site, self.table):
            raise SiteError(
                f"{self.name} has a table of another kind",
                where=str(loaded.path),
                next_step=f"plan it in [{self.table}.{self.name}]",
            )
        roles = {name: site.arms_of(self.name)[name].role for name in arms}
        wrong = [
            f"{name} has the role {role}" for name, role in roles.items() if role not in self.roles
        ]
        if wrong:
            raise SiteError(
                f"{self.name} does not compare these arms: {', '.join(wrong)}",
                where=str(loaded.path),
                next_step=f"give each one of {', '.join(self.roles)}, or leave it out of `arms`",
            )
