"""Every role has a contract, and a contract says something."""

from __future__ import annotations

from r8.roles import CONTRACTS, Role


def test_every_role_has_one_contract() -> None:
    assert set(CONTRACTS) == set(Role)
    assert len({one.meaning for one in CONTRACTS.values()}) == len(Role)


def test_only_an_arm_without_a_kv_tier_reads_nothing_and_only_the_negative_is_not_judged() -> None:
    assert [role for role, one in CONTRACTS.items() if not one.tiers] == [Role.RECOMPUTE]
    assert [role for role, one in CONTRACTS.items() if not one.judged] == [Role.NEGATIVE]
