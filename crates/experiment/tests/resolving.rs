//! What resolving refuses, so that the simulator has nothing left to refuse, and what it does not.

use dumbbell_experiment::{Experiment, NoEnvironment};

const LINK: &str = "[[link]]\nname = \"l\"\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n";

fn resolve(text: &str) -> Result<Experiment, String> {
    let read = Experiment::from_toml(text, "", &[] as &[&str]);
    let resolved = read.and_then(|experiment| experiment.resolve(&NoEnvironment));
    resolved.map_err(|errors| errors.to_string())
}

/// The errors of an experiment with one link and these flows, each `KEY: PROBLEM`.
fn errors_of(flows: &str) -> Vec<String> {
    let text = format!("duration = \"60 s\"\n{LINK}{flows}");
    let errors = resolve(&text).expect_err("not valid");
    errors.lines().map(|line| line.split_once(": ").expect("a line").1.to_owned()).collect()
}

/// The error of an experiment with one link and these flows.
fn error_of(flows: &str) -> String {
    let errors = errors_of(flows);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.concat()
}

fn two_links(first: &str, second: &str, flows: &str) -> Result<Experiment, String> {
    let link = |name: &str, keys: &str| format!("[[link]]\nname = \"{name}\"\n{keys}\n");
    resolve(&format!("duration = \"9 s\"\n{}{}{flows}", link("a", first), link("b", second)))
}

#[test]
fn segments_of_the_experiment_have_room_for_mptcp() {
    let link = "rate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n";
    let flow = "[stack_options]\nmss = 10\n[[flow]]\ncc = \"cubic\"\npaths = [[\"a\"], [\"b\"]]\n";
    let error = two_links(link, link, flow).expect_err("too small a segment");
    assert!(error.contains("stack_options.mss: 10 bytes have no room for the data of MPTCP"));
    assert!(!error.contains("flow."), "{error}");
}

#[test]
fn a_flow_has_no_more_data_than_numbers_of_packets() {
    let error = error_of("[[flow]]\ncc = \"cubic\"\nbytes = \"10 TB\"\n");
    let start = "flow.flow-1.bytes: \"10 TB\" is more than 4,294,967,294 packets of 1448 bytes, ";
    assert!(error.starts_with(start), "{error}");
    let most = error.split('"').nth(3).expect("the most");
    let text = format!("duration = \"9 s\"\n{LINK}[[flow]]\ncc = \"cubic\"\nbytes = \"{most}\"\n");
    let scenario = resolve(&text).expect("at most").scenario(1);
    scenario.check().expect("the most");
}

#[test]
fn subflows_count_as_flows_in_the_limits_of_rows_and_of_flows() {
    let refused = |repeat: u32, sample: &str| {
        let link = "[[link]]\nname = \"a\"\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n";
        let links = format!("{link}{}", link.replace("\"a\"", "\"b\""));
        let flow = "[[flow]]\ncc = \"cubic\"\npaths = [[\"a\"], [\"b\"]]\n";
        let times = format!("duration = \"60 s\"\nsample = \"{sample}\"\n");
        resolve(&format!("{times}{links}{flow}repeat = {repeat}\n")).expect_err("too many")
    };
    let error = refused(900, "1 ms");
    assert!(error.contains("sample: would give 108,001,800 rows; the maximum is 100,000,000"));
    let error = refused(500_001, "60 s");
    assert!(error.contains("flow: there are 1,000,002 subflows; the maximum is 1,000,000"));
}

#[test]
fn a_queue_holds_a_packet_of_the_flows_that_cross_its_link() {
    let (first, link) = ("rate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n", "rate = \"10 Mbit/s\"\n");
    let flows = "[[flow]]\ncc = \"cubic\"\npath = [\"a\"]\nstack_options = { mss = 8948 }\n\
                 [[flow]]\ncc = \"cubic\"\npath = [\"b\"]\nrtt = \"9 ms\"\n";
    for queue in ["6 kB", "0.5 BDP"] {
        let second = format!("{link}queue = \"{queue}\"\n");
        two_links(first, &second, flows).expect("holds packets of 1500 bytes");
        let crossed = flows.replace("path = [\"a\"]", "path = [\"a\", \"b\"]\nrtt = \"20 ms\"");
        let crossed = two_links(first, &second.replace("0.5", "0.2"), &crossed);
        assert!(crossed.expect_err("too little").contains("not even a packet of 9000 bytes fits"));
    }
}

#[test]
fn a_link_of_acknowledgements_needs_no_room_for_data() {
    let flow = "[[flow]]\ncc = \"cubic\"\npath = [\"a\"]\nreturn_path = [\"b\"]\nrtt = \"2 ms\"\n";
    let first = "rate = \"10 Mbit/s\"\n";
    let resolved = two_links(first, "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n", flow);
    assert_eq!(resolved.expect("valid").links[1].queue.as_deref(), Some("250 B"));
    let error = two_links(first, "rate = \"1 kbit/s\"\ndelay = \"1 ms\"\n", flow);
    assert!(error.expect_err("no queue at all").ends_with("; nothing fits"));
}

#[test]
fn no_template_makes_resolving_panic() {
    for template in [
        "leo(rate=1000 Tbit/s)",
        "leo(rtt=1000000 s, step=1000000 s)",
        "wifi(suspension=1000000 s, every=1 s)",
        "5g(blocked=1000000 s, every=1 s, seed=7)",
        "lte(rate=1000 Tbit/s)",
    ] {
        let link = format!("[[link]]\nname = \"l\"\ntemplate = \"{template}\"\n");
        let text = format!("duration = \"60 s\"\n{link}[[flow]]\ncc = \"cubic\"\n");
        match resolve(&text) {
            Ok(resolved) => resolved.scenario(1).check().expect(template),
            Err(error) => {
                assert!(error.contains("link.l.template: lte(rate=1000 Tbit/s, rtt="), "{error}");
                assert!(error.contains("there are 1,000,002 lines of a trace"), "{error}");
                assert_eq!(error.lines().count(), 1, "{error}");
            }
        }
    }
}

#[test]
fn the_times_of_all_copies_of_an_application_are_counted() {
    let flow = |repeat: u32| {
        let app = "app = \"on-off(on=1 ms, off=1 ms)\"\napp_rate = \"1 Mbit/s\"\n";
        format!("[[flow]]\ncc = \"cubic\"\n{app}repeat = {repeat}\n")
    };
    resolve(&format!("duration = \"60 s\"\n{LINK}{}", flow(16))).expect("960,000 steps");
    let error = error_of(&flow(17));
    assert!(error.contains("app: starts and stops some 1,020,000 times"), "{error}");
}

#[test]
fn a_stop_after_the_end_changes_no_limit() {
    let transfers =
        "cc = \"cubic\"\narrivals = \"periodic(every=1 ms)\"\nsizes = \"fixed(1 kB)\"\n";
    let transfers = transfers.replace("fixed(1 kB)", "exponential(mean=1 kB)");
    let flow = format!("[[flow]]\n{transfers}stop = \"100000 s\"\n");
    resolve(&format!("duration = \"60 s\"\n{LINK}{flow}")).expect("60,000 transfers");
    let free = "[[link]]\nname = \"l\"\ndelay = \"50 ms\"\n";
    let stack = "stack_options = { receive_window = 1000000 }\n";
    let flow = format!("[[flow]]\ncc = \"cubic\"\nstop = \"1 h\"\n{stack}");
    resolve(&format!("duration = \"1 s\"\n{free}{flow}")).expect("over after ten round trips");
}

#[test]
fn a_command_is_all_that_a_flow_is() {
    let refused = |keys: &str| {
        let cc = if keys.contains("udp") { "none" } else { "udt" };
        let cc = if keys.contains("transport") { cc } else { "cubic" };
        error_of(&format!("[[flow]]\ncc = \"{cc}\"\ncommand = \"iperf3\"\n{keys}\n"))
    };
    for (keys, key) in [
        ("bytes = \"1 MB\"", "bytes: is not for a command, which sends what it wants"),
        ("app_rate = \"1 Mbit/s\"", "app_rate: is not for a command"),
        ("app_rates = [[\"0 s\", \"1 Mbit/s\"]]", "app_rates: is not for a command"),
        ("app = \"on-off\"\napp_rate = \"1 Mbit/s\"", "command: is not for app = \"on-off\""),
        ("transport = \"udt\"", "command: has its own transport, and the flow's is \"udt\""),
        (
            "transport = \"udp\"\napp_rate = \"1 Mbit/s\"",
            "command: has its own transport, and the flow's is \"udp\"",
        ),
    ] {
        let error = refused(keys);
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn options_of_a_transport_name_the_transports_that_have_them() {
    let refused = |options: &str| {
        error_of(&format!("[[flow]]\ncc = \"cubic\"\ntransport_options = {{ {options} }}\n"))
    };
    assert!(refused("window = 64").ends_with("write transport = \"udt\", or leave them out"));
    let error = refused("packet_size = 1000");
    assert!(error.contains("transport = \"sabul\" or \"rbudp\", or leave them out"), "{error}");
    assert!(refused("crypto = \"null\"").contains("write transport = \"quic\""));
    assert!(refused("window = 64, crypto = \"null\"").ends_with("is \"tcp\"; leave them out"));
}

#[test]
fn sizes_beside_an_application_are_one_error() {
    for app in ["app = \"video\"", "app = \"on-off\"\napp_rate = \"1 Mbit/s\""] {
        let sizes = "sizes = \"exponential(mean=1 kB)\"";
        let error = error_of(&format!("[[flow]]\ncc = \"cubic\"\n{app}\n{sizes}\n"));
        assert!(error.contains("sizes: is not for app = "), "{error}");
    }
}

#[test]
fn only_random_pauses_make_scenarios_vary_with_the_seed() {
    let varies = |app: &str| {
        let flow = format!("[[flow]]\ncc = \"cubic\"\n{app}app_rate = \"1 Mbit/s\"\n");
        resolve(&format!("duration = \"9 s\"\nstart_jitter = \"1 s\"\n{LINK}{flow}"))
            .map(|experiment| {
                let (first, second) = (experiment.scenario(1), experiment.scenario(2));
                let same =
                    format!("{first:?}") == format!("{second:?}").replace("seed: 2", "seed: 1");
                (experiment.varies_with_seed(), !same)
            })
            .expect("valid")
    };
    assert_eq!(varies("app = \"on-off\"\n"), (true, true));
    assert_eq!(varies("app = \"on-off(random=off)\"\n"), (false, false));
    assert_eq!(varies(""), (false, false));
}

#[test]
fn errors_of_overridden_experiments_have_no_lines() {
    let text = format!("duration = \"60 s\"\n{LINK}[[flow]]\ncc = \"cubic\"\nrtt = \"40 ms\"\n");
    let experiment = Experiment::from_toml(&text, "", &[] as &[&str]).expect("valid");
    let error = experiment.overridden(&["flow.flow-1.start=70 s"]).expect_err("too late");
    assert!(error.to_string().starts_with("flow.flow-1.start: "), "{error}");
    let error = experiment.overridden(&["duration=20 ms", "start_jitter=1 s"]);
    let late = error.expect("valid").overridden(&["link.l.delay=1 s"]).expect("valid");
    let error = late.resolve(&NoEnvironment).expect_err("a delay longer than the RTT").to_string();
    assert!(error.starts_with("flow.flow-1.rtt: \"40 ms\" is less than"), "{error}");
}

#[test]
fn an_infinite_number_is_no_text() {
    let text = |title: &str, name: &str| {
        format!(
            "title = {title}\nduration = \"9 s\"\n{LINK}[[flow]]\ncc = \"cubic\"\nname = {name}\n"
        )
    };
    let error = resolve(&text("inf", "nan")).expect_err("two numbers");
    assert!(
        error.starts_with("line 1: title: inf is a number, not text; write \"inf\""),
        "{error}"
    );
    assert!(error.contains("line 9: flow.flow-1.name: nan is a number, not text"), "{error}");
    resolve(&text("\"inf\"", "\"nan\"")).expect("texts");
}

#[test]
fn an_empty_reason_is_written_out() {
    let text = format!("duration = \"9 s\"\n[assumed]\nx = \"\"\n{LINK}[[flow]]\ncc = \"cubic\"\n");
    let experiment = resolve(&text).expect("valid");
    let again = resolve(&experiment.to_toml(false)).expect("valid");
    assert_eq!(again, experiment);
    assert_eq!(again.assumed["x"], "");
}
