//! QUIC flows in experiment files.

use dumbbell_experiment::{
    CustomAlgorithm, Diagnostics, Environment, Experiment, NoEnvironment, explain, schema,
};
use serde_json::json;

/// An experiment with a flow of these keys.
fn read(keys: &str) -> Result<Experiment, Diagnostics> {
    let text = format!(
        "duration = \"10 s\"\n[[link]]\nname = \"a\"\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [[flow]]\n{keys}"
    );
    Experiment::from_toml(&text, "a.toml", &[] as &[&str])
}

fn errors(keys: &str) -> Vec<String> {
    read(keys).expect_err("not valid").0.iter().map(ToString::to_string).collect()
}

#[test]
fn a_quic_flow_is_resolved_with_its_stack_and_every_option() {
    let read = read("cc = \"noq:bbr3\"\ntransport = \"quic\"").expect("valid");
    let resolved = read.resolve(&NoEnvironment).expect("its parts fit together");
    let flow = &resolved.flows[0];
    assert_eq!(flow.stack.as_deref(), Some("noq"));
    let options = json!({"crypto": "null", "initial_mtu": 1200, "mtu_discovery": true,
                         "ack_eliciting_threshold": 0, "idle_timeout": "0 ms", "datagrams": false});
    assert_eq!(json!(flow.transport_options), options);
    let options = json!({"crypto": "null", "initial_mtu": 1200, "mtu_discovery": true,
                         "ack_eliciting_threshold": 0, "idle_timeout_ns": 0, "datagrams": false});
    assert_eq!(resolved.payloads(), [1419]);
    assert!(resolved.sources.is_empty());
    let scenario = serde_json::to_value(resolved.scenario(1)).expect("JSON");
    let external = json!({"transport": "quic", "stack": "noq", "options": options});
    assert_eq!(scenario["flows"][0]["external"], external);
    assert_eq!(resolved.resolve(&NoEnvironment).expect("resolved"), resolved);
}

#[test]
fn a_tcp_flow_has_nothing_of_quic_in_its_scenario() {
    let read = read("cc = \"cubic\"").expect("valid");
    let resolved = read.resolve(&NoEnvironment).expect("its parts fit together");
    let text = serde_json::to_string(&resolved.scenario(1)).expect("JSON");
    assert!(!text.contains("external"), "{text}");
}

#[test]
fn the_stack_is_that_of_the_algorithm_or_the_one_that_is_given() {
    for (keys, stack) in [
        ("cc = \"cubic\"", "quinn"),
        ("cc = \"noq:cubic\"", "noq"),
        ("cc = \"cubic\"\nstack = \"noq\"", "noq"),
    ] {
        let read = read(&format!("{keys}\ntransport = \"quic\"")).expect("valid");
        let resolved = read.resolve(&NoEnvironment).expect("its parts fit together");
        assert_eq!(resolved.flows[0].stack.as_deref(), Some(stack), "{keys}");
    }
}

#[test]
fn what_a_quic_flow_cannot_have_is_refused_with_what_it_can() {
    for (keys, part) in [
        ("cc = \"quinn:cubic\"", "is an algorithm of a QUIC stack; write transport = \"quic\""),
        ("cc = \"cubic\"\nstack = \"quinn\"", "\"quinn\" is a QUIC stack; write transport ="),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\nstack = \"linux\"",
            "is a TCP stack, and the flow's transport is \"quic\"; choose from quinn, noq",
        ),
        (
            "cc = \"noq:bbr3\"\ntransport = \"quic\"\nstack = \"quinn\"",
            "is an algorithm of noq, and the flow's stack is \"quinn\"",
        ),
        (
            "cc = \"quinn:vegas\"\ntransport = \"quic\"",
            "is not an algorithm of quinn; choose from quinn:cubic, quinn:reno, quinn:bbr, which",
        ),
        (
            "cc = \"udt\"\ntransport = \"quic\"",
            "needs what a UDT receiver reports; write transport = \"udt\"",
        ),
        (
            "cc = \"dctcp\"\ntransport = \"quic\"",
            "needs the number of marked packets, which QUIC stacks do not report",
        ),
        ("cc = \"none\"\ntransport = \"quic\"", "is for flows that nothing controls, over UDP"),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\ntransport_options = { window = 5 }",
            "no option of QUIC is called \"window\"",
        ),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\nstack_options = { pacing = true }",
            "is TCP's, and the flow's transport is \"quic\"; leave it out",
        ),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\npaths = [[\"a\"], [\"a\"]]",
            "\"quic\" has one path; write path, or transport = \"tcp\"",
        ),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\narrivals = \"poisson(every=1 s)\"\n\
             sizes = \"exponential(mean=10 kB)\"",
            "\"quic\" has one transfer",
        ),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\ncommand = \"iperf3\"",
            "has its own transport, and the flow's is",
        ),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\ntransport_options = { datagrams = true }",
            "app_rate: is missing; datagrams are sent at this rate",
        ),
        (
            "cc = \"cubic\"\ntransport = \"quic\"\napp_rate = \"1 Mbit/s\"\nbytes = \"1 MB\"\n\
             transport_options = { datagrams = true }",
            "is not for a flow of datagrams; leave it out, or write stop",
        ),
        ("cc = \"cubic\"\nstack = \"quiche\"", "no stack is called \"quiche\""),
    ] {
        let errors = errors(keys);
        assert!(errors.iter().any(|error| error.contains(part)), "{keys}: {errors:#?}");
    }
}

#[test]
fn a_program_without_quic_says_so_at_the_key() {
    struct Page;

    impl Environment for Page {
        fn trace(&self, path: &str) -> Result<String, String> {
            NoEnvironment.trace(path)
        }

        fn algorithm(&self, cc: &str) -> Result<CustomAlgorithm, String> {
            NoEnvironment.algorithm(cc)
        }

        fn transport(&self, name: &str) -> Result<(), String> {
            if name == "quic" { Err("\"quic\" is not here".to_owned()) } else { Ok(()) }
        }
    }

    let read = read("cc = \"cubic\"\ntransport = \"quic\"").expect("valid");
    let error = read.resolve(&Page).expect_err("no QUIC").to_string();
    assert!(error.contains("\"quic\" is not here"), "{error}");
}

#[test]
fn the_stacks_and_their_options_are_explained_and_in_the_schema() {
    let quinn = explain("quinn").expect("a topic");
    assert!(quinn.contains("a QUIC stack, quinn-proto 0.11"), "{quinn}");
    let option = explain("quic.initial_mtu").expect("a topic");
    assert!(option.contains("In a file: transport_options = { initial_mtu = 1200 }"), "{option}");
    let text = schema().to_string();
    for part in ["\"quic\"", "\"noq\"", "ack_eliciting_threshold"] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_controller_that_draws_unseeded_random_numbers_is_warned_of() {
    let warnings = |cc: &str| {
        let read = read(&format!("cc = \"{cc}\"\ntransport = \"quic\"")).expect("valid");
        read.resolve(&NoEnvironment).expect("its parts fit together").warnings(true)
    };
    assert!(warnings("quinn:bbr").is_empty());
    let [ref warning] = warnings("noq:bbr3")[..] else { panic!("one warning") };
    assert!(warning.contains("runs with the same seed differ"), "{warning}");
}
