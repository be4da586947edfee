"""The promises of the gateway's pages, each with the test that holds it."""

import re

import pytest

from tests.support.documents import ROOT

PROMISES = {
    "gateway.md": {
        "It never opens a value": "test_no_object_is_made_of_what_a_client_sends",
        "continues threads of the other": "test_a_fork_of_the_others_history_is_continued_by_either",
        "waits for a human asks again there": "test_parallel_interrupts_are_asked_again_and_resumed_by_their_new_ids",
        "serves this machine only": "test_insecure_is_for_requests_of_this_machine",
        "Everywhere the service itself verifies": "test_nothing_but_a_token_says_who_asks",
        "the client refuses a larger one by name": "test_a_request_that_is_too_large_is_refused_by_its_client",
        "which sends only what is new": "test_a_later_step_sends_what_it_adds",
        "[`nginx.conf`](../infra/proxy/nginx.conf) and": "test_everything_goes_through",
        "429, which clients retry": "test_what_fails_for_the_moment_is_sent_again",
        "a refused token makes the client": "test_a_token_is_asked_for_once_and_again_when_it_is_refused",
        "within a second of a change": "test_a_token_is_revoked_by_a_change_of_the_file_without_a_restart",
        "`principals_file`, and reads": "test_principals_may_be_in_a_file_of_their_own_which_is_watched",
        "service starts only with `--insecure`": "test_without_principals_it_has_to_be_insecure",
        "refuses what a proxy passes on": "test_insecure_refuses_what_comes_through_a_proxy",
        "with a leeway of 10 seconds": "test_a_valid_token_says_who_it_is_and_clocks_may_differ_by_the_leeway",
        "for a day if": "test_while_the_issuer_fails_what_was_fetched_counts_for_a_day",
        "once in 10 seconds": "test_who_has_a_new_key_is_told_to_come_again_until_it_is_known",
        "a JWT without that claim is refused": "test_claims_say_who_and_whose",
        "one without a right may do nothing": "test_claims_say_what_they_may_do",
        "No right includes another": "test_a_right_is_for_its_endpoints_only",
        "A tenant cannot list": "test_what_is_about_all_threads_is_for_administrators_of_all_and_runs_for_everybody",
        "It reaches only threads of the owner": "test_every_endpoint_refuses_what_is_another_s_and_nobody_s",
        "new ones get this owner": "test_new_threads_get_the_owner_and_lists_are_theirs",
        "Each request costs [1 read unit]": "test_it_costs_one_read_of_the_thread_item_for_each_request",
        "Namespaces begin with": "test_what_is_others_is_refused",
        "an owner without a tenant has none": "test_an_owner_of_no_tenant_has_none",
        "it caches only with an `owner_key`": "test_a_service_that_encrypts_caches_nothing_without_a_key_for_digests",
        "other methods of [saver]": "test_every_method_of_a_class_is_called_in_its_cells",
        "| a cipher of its own | refused": "test_a_serializer_that_encrypts_is_refused",
        "| 413 |": "test_a_length_is_announced_and_holds",
        "nesting of a body": "test_a_document_has_so_much_and_no_more",
        "what one request reads": "test_what_is_read_is_counted_and_waits_for_its_turn_if_there_is_no_room",
        "504; the client asks again": "test_what_has_begun_ends_when_its_time_is_over",
        "Lists, copies": "test_a_copy_by_parts_is_that_of_one_call_and_begins_again_if_a_thread_changes",
        "408; the response is cut off": "test_a_reader_that_takes_nothing_is_not_waited_for",
        "`search_bytes_max`": "test_what_a_search_reads_counts_as_memory_of_its_principal",
        "`tenant_stored_bytes_total`": "test_the_log_joins_threads_and_awss_requests_and_what_is_stored_is_counted",
        "Nothing is decompressed": "test_a_body_that_says_that_it_is_too_large_is_not_decompressed",
        "A tenant gets at most half": "test_those_who_take_all_they_can_leave_some_to_whoever_comes_next",
        "bodies that arrive get 503": "test_bodies_for_which_there_is_no_room_are_refused_before_they_come",
        "that the table answers": "test_it_is_ready_while_the_table_answers",
        "then `(other)`": "test_requests_are_counted_by_tenant_and_those_of_many_under_one_name",
        "no thread ids and no parts of a body": "test_a_request_is_one_line_without_a_state",
        "After SIGTERM": "test_it_serves_until_it_is_told_to_end_and_logs_no_state",
        "digests of the ids": "test_the_log_joins_threads_and_awss_requests_and_what_is_stored_is_counted",
        "create only objects of harmless types": "test_by_default_no_type_is_made_that_was_not_allowed",
    },
    "wire.md": {
        "has every field": "test_the_page_of_the_wire_and_the_description_that_is_kept_have_every_endpoint",
        "clients read the types": "test_javascript_reads_values_of_python_and_writes_what_python_reads",
        "Bytes are base64, in requests of either alphabet": "test_bytes_are_base64_of_either_alphabet",
        "Every operation is idempotent": "test_a_call_succeeds_when_each_request_of_its_service_is_carried_out_twice",
        "at random": "test_the_gateway_says_how_long_to_wait",
        "refuses or ends a request at that time": "test_a_deletion_that_comes_late_deletes_nothing",
        "An error is a problem body": "test_every_class_of_errors_keeps_its_name_and_its_message",
        "Ignore unknown fields of a response": "test_a_client_ignores_what_responses_of_a_later_release_have_more",
        "refuses those of a request": "test_what_is_no_request_is_a_problem_of_its_sender_told_by_its_fields",
        "If your client does not know the `wire_version`": "test_another_version_of_the_wire_is_named",
        "may be a **delta**": "test_a_delta_that_does_not_fit_its_base_is_refused",
        "<!-- endpoints -->": "test_the_page_of_the_wire_and_the_description_that_is_kept_have_every_endpoint",
        "`have` lists digests that you have": "test_a_reader_gets_what_it_does_not_have",
        "compare it yourself": "test_a_filter_may_have_whatever_metadata_have_or_what_equals_it",
        "If `after` in a response": "test_a_page_ends_after_a_quarter_of_its_time_or_8_seconds_also_if_nothing_matches",
        "what was wrong with one thread": "test_a_damaged_thread_does_not_keep_others_from_being_listed_on_any_page",
        "It comes in pages, too": "test_a_history_that_is_larger_than_an_answer_comes_in_pages",
        "nothing was stored": "test_a_base_is_only_what_the_parent_has_in_the_channel",
        "the agent may change them": "test_what_the_agent_changes_while_the_service_wants_more_is_not_stored",
        "writes of that order are there": "test_an_order_in_the_far_future_is_refused",
        "Each `lock` is one attempt": "test_a_lock_that_another_has_is_lost",
        "state before its puts": "test_a_batch_reads_the_state_before_its_puts_and_the_last_put_counts",
        "the same when you repeat the request": "test_a_put_if_whose_answer_was_lost_is_known_again",
    },
    "threat-model.md": {
        "name another tenant's thread": "test_every_field_that_names_a_thread_or_an_owner_is_checked",
        "see or delete another tenant's part of a run": "test_by_run_a_tenant_hears_of_its_own_damage_only",
        "reach another user's thread": "test_a_thread_that_becomes_another_s_in_between_is_refused",
        "reach the table": "test_a_request_reaches_its_tenants_partitions_only",
        "A test attacks a service": "test_an_attack_leaves_memory_and_another_tenants_time_bounded",
        "impersonate somebody by a header": "test_nothing_but_a_token_says_who_asks",
        "A key in the service": "test_encrypted_values_show_nothing",
    },
}


@pytest.mark.parametrize("page", PROMISES)
def test_each_promise_has_its_test(page: str) -> None:
    said = " ".join((ROOT / "docs" / page).read_text().split())
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.M)
    }
    assert {words for words in PROMISES[page] if words not in said} == set()
    assert {name for name in PROMISES[page].values() if name not in tests} == set()
