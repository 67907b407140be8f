//! The example of a user-defined algorithm behaves as documented.

#[path = "../examples/custom_algorithm.rs"]
#[allow(dead_code, reason = "its main function is not called")]
mod example;

#[test]
fn it_keeps_its_target_in_the_queue_and_the_link_busy() {
    let outcome = example::alone("calm").expect("the scenario is valid");
    let rate = outcome.flows.delivered[0] as f64 * 8.0 / 20.0;
    assert!(rate > 0.95 * 1e8 * 1448.0 / 1500.0, "{rate}");
    // 4 packets of 1500 bytes take 0.48 ms; slow start and bursts of two packets add to it.
    let delay = outcome.flows.queue_delay_mean[0].expect("packets arrived");
    assert!(delay > 0.24e-3 && delay < 2e-3, "{delay}");
    assert_eq!(outcome.flows.lost[0], 0);
    assert!(outcome.internals.value.iter().any(|backlog| (*backlog - 4.0).abs() < 1.0));
}

#[test]
fn an_unknown_algorithm_name_is_refused() {
    let error = example::alone("clam").expect_err("it is called calm");
    assert!(error.to_string().contains("no algorithm is called \"clam\""), "{error}");
}
