//! CAKE in runs: hosts that share a rate, and the ACK filter on an asymmetric path.

use dumbbell_experiment::{Experiment, NoEnvironment};

/// The payload bytes that each flow receives in 20 s.
fn received(text: &str) -> Vec<f64> {
    let text = format!("duration = \"20 s\"\n{text}");
    let experiment = Experiment::from_toml(&text, "a.toml", &[] as &[&str]).expect("valid");
    let resolved = experiment.resolve(&NoEnvironment).expect("valid");
    let output = resolved.scenario(1).run().expect("valid");
    output.flows.received.iter().map(|&bytes| bytes as f64).collect()
}

/// The path is short, so that a single CUBIC flow keeps its queue from running empty.
fn share_of_the_first(hosts: &str) -> f64 {
    let received = received(&format!(
        r#"
        [[link]]
        name = "down"
        rate = "20 Mbit/s"
        delay = "2 ms"
        aqm = "cake(hosts={hosts})"
        [[flow]]
        name = "phone"
        cc = "cubic"
        receiver = "phone"
        [[flow]]
        name = "laptop"
        cc = "cubic"
        receiver = "laptop"
        repeat = 9
        "#
    ));
    received[0] / received.iter().sum::<f64>()
}

#[test]
fn a_host_with_one_flow_has_half_of_the_rate() {
    assert!((share_of_the_first("triple-isolate") - 0.5).abs() < 0.03);
    assert!((share_of_the_first("dual-dsthost") - 0.5).abs() < 0.03);
    assert!((share_of_the_first("dual-srchost") - 0.1).abs() < 0.02);
    assert!((share_of_the_first("flows") - 0.1).abs() < 0.02);
}

/// The paper, section I: the ACK filter raises the throughput of highly asymmetric links. An upload
/// shares the way back.
#[test]
fn the_ack_filter_raises_the_goodput_of_an_asymmetric_path() {
    let download = |ack_filter: &str| {
        received(&format!(
            r#"
            [[link]]
            name = "down"
            rate = "100 Mbit/s"
            delay = "10 ms"
            aqm = "cake"
            [[link]]
            name = "up"
            rate = "1 Mbit/s"
            delay = "10 ms"
            aqm = "cake(ack_filter={ack_filter})"
            [[flow]]
            name = "download"
            cc = "cubic"
            path = ["down"]
            return_path = ["up"]
            [[flow]]
            name = "upload"
            cc = "cubic"
            path = ["up"]
            return_path = ["down"]
            "#
        ))[0]
    };
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(download);
    assert!(on > 1.1 * off, "{off} {on}");
    assert!(aggressive > 1.1 * off, "{off} {aggressive}");
}

#[test]
fn a_queue_that_cake_may_fill_is_warned_of() {
    let warnings = |queue: &str| {
        let link =
            "[[link]]\nname = \"down\"\nrate = \"20 Mbit/s\"\ndelay = \"2 ms\"\naqm = \"cake\"";
        let text = format!("duration = \"5 s\"\n{link}\n{queue}\n[[flow]]\ncc = \"cubic\"");
        let read = Experiment::from_toml(&text, "a.toml", &[] as &[&str]).expect("valid");
        read.resolve(&NoEnvironment).expect("valid").warnings(true)
    };
    assert!(warnings("").is_empty());
    let [ref warning] = warnings("queue = \"20 ms\"")[..] else { panic!("one warning") };
    assert!(warning.contains("leave out the link's queue"), "{warning}");
}
