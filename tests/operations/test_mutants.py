"""Every rule of an operation has a test: it passes with the saver, and fails with the rule broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerError
from tests.operations import (
    mutants,
    test_cache,
    test_collect,
    test_copy,
    test_delta_expiry,
    test_get,
    test_put,
    test_put_writes,
    test_renew,
    test_renewal_crashes,
    test_thread_item,
    test_threads,
)
from tests.operations.mutants import Mutation
from tests.operations.test_threads import Users
from tests.runtime import test_requests

CATCHERS: Mapping[Mutation, Callable[..., None]] = {
    mutants.puts_ignore_renewals: partial(
        test_renew.test_a_put_beside_a_renewal_lives_as_long,
        stands_still_before=test_renew.extends_head,
    ),
    mutants.renewals_keep_the_newest_only: (
        test_renew.test_a_call_from_an_older_checkpoint_keeps_what_a_run_from_it_needs
    ),
    mutants.renewals_trust_what_they_have_read: (
        test_renew.test_a_renewal_of_a_thread_that_began_anew_does_nothing
    ),
    mutants.former_lives_are_shown: partial(
        test_renewal_crashes.test_a_renewal_that_dies_leaves_all_of_the_state_or_nothing,
        use="put",
        age=1.5,
        removes="nothing",
    ),
    mutants.dead_threads_go_on: partial(
        test_renewal_crashes.test_a_renewal_that_dies_leaves_all_of_the_state_or_nothing,
        use="put",
        age=1.5,
        removes="nothing",
    ),
    mutants.copies_are_shown_as_they_grow: test_copy.test_a_copy_that_dies_shows_nothing,
    mutants.unprocessed_writes_are_dropped: test_requests.test_a_batch_goes_on_until_nothing_is_unprocessed,
    mutants.new_versions_do_not_matter: (test_put.test_a_new_channel_is_stored_though_its_version_is_old),
    mutants.heads_are_put_without_a_condition: (
        test_put.test_a_late_commit_does_not_replace_what_was_stored_since
    ),
    mutants.heads_are_replaced_under_an_epoch_that_ended: (
        test_put.test_a_put_of_an_ended_epoch_replaces_no_others_head
    ),
    mutants.what_took_a_heads_place_is_not_kept: (
        test_collect.test_a_deletion_keeps_what_replaced_a_head_that_it_had_read
    ),
    mutants.settled_heads_are_replaced_at_once: (
        test_collect.test_a_slow_put_does_not_replace_what_a_deletion_has_settled
    ),
    mutants.settled_heads_are_of_any_life: (
        test_collect.test_what_was_settled_is_not_of_a_life_that_begins_anew
    ),
    mutants.uploads_take_their_time: (test_put.test_a_put_that_uploaded_long_ago_begins_again),
    mutants.pending_epochs_are_confirmed: test_put.test_a_put_does_not_rely_on_an_epoch_that_has_not_begun,
    mutants.segments_that_have_gone_are_ignored: (
        test_put.test_a_put_that_finds_a_segment_gone_stores_the_value_again
    ),
    mutants.reads_that_were_sent_are_shared: (
        test_thread_item.test_a_confirmation_uses_no_answer_from_before_its_commit
    ),
    mutants.a_cached_activity_counts: partial(
        test_threads.test_a_put_does_not_rely_on_another_one_that_was_to_enter_the_thread, users=Users()
    ),
    mutants.a_touch_is_given_up: partial(
        test_threads.test_a_thread_that_is_pruned_between_confirmation_and_touch_is_touched,
        users=Users(),
        is_listed=True,
        prunes=1,
    ),
    mutants.the_first_special_write_wins: (
        test_put_writes.test_within_a_call_the_last_write_to_a_special_channel_wins
    ),
    mutants.writes_reuse_across_epochs: (
        test_put_writes.test_writes_reuse_nothing_that_is_remembered_under_another_epoch
    ),
    mutants.anybody_releases: partial(
        test_thread_item.test_a_deletion_that_lost_its_claim_does_not_release_another_ones,
        deletion="prune",
        stands_still_before="#pending",
    ),
    mutants.what_is_remembered_is_trusted: test_cache.test_a_deleted_state_is_not_read_from_memory,
    mutants.copies_end_with_the_newest_head: (
        test_copy.test_a_copy_that_dies_hides_nothing_that_its_target_had
    ),
    mutants.copies_keep_segment_ids: (test_copy.test_a_slow_deletion_takes_nothing_from_a_copy_made_again),
    mutants.abandoned_writes_go_though_their_head_has_come: (
        test_collect.test_a_deletion_leaves_old_writes_whose_checkpoint_came_while_it_ran
    ),
    mutants.abandoned_writes_go_though_somebody_adds_to_them: (
        test_collect.test_a_deletion_leaves_old_writes_that_are_stored_again_while_it_runs
    ),
    mutants.pages_without_heads_are_read_on_from: (
        test_get.test_a_put_and_a_prune_come_between_the_requests_of_a_reader
    ),
    mutants.expired_ancestors_are_served: (
        test_delta_expiry.test_a_checkpoint_is_not_rebuilt_from_ancestors_that_have_expired
    ),
    mutants.what_is_kept_for_others_is_rebuilt: (
        test_delta_expiry.test_a_checkpoint_that_is_kept_for_later_ones_has_no_history_of_its_own
    ),
}


@pytest.mark.parametrize("mutation", CATCHERS, ids=lambda mutation: mutation.__name__)
def test_a_mutant_is_caught(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The test fails with the mutant; that it passes with the saver shows where it stands."""
    catcher = CATCHERS[mutation]
    fixtures = [
        name for name, each in signature(catcher).parameters.items() if each.default is Parameter.empty
    ]
    world = {name: request.getfixturevalue(name) for name in fixtures}
    mutation(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, CheckpointerError)):
        catcher(**world)
