//! Flows of SABUL, RBUDP and Tsunami in experiment files.

use dumbbell_experiment::{Diagnostics, Experiment, NoEnvironment, explain, schema};
use serde_json::json;

/// An experiment with a flow of these keys.
fn read(keys: &str) -> Result<Experiment, Diagnostics> {
    let text = format!(
        "duration = \"10 s\"\n[[link]]\nname = \"a\"\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [[flow]]\n{keys}"
    );
    Experiment::from_toml(&text, "a.toml", &[] as &[&str])
}

#[test]
fn a_bulk_flow_is_resolved_with_every_option_of_its_protocol() {
    let read =
        read("cc = \"none\"\ntransport = \"tsunami\"\ntransport_options = { block_size = 1400 }");
    let resolved = read.expect("valid").resolve(&NoEnvironment).expect("its parts fit together");
    let options = json!({"target_rate": "650 Mbit/s", "block_size": 1400, "error_rate": 7500,
        "slower_num": 25, "slower_den": 24, "faster_num": 5, "faster_den": 6, "history": 25});
    assert_eq!(json!(resolved.flows[0].transport_options), options);
    assert_eq!(resolved.payloads(), [1400]);
    let scenario = serde_json::to_value(resolved.scenario(1)).expect("JSON");
    let external = &scenario["flows"][0]["external"];
    assert_eq!(external["transport"], json!("tsunami"));
    assert_eq!(external["options"]["target_rate_bps"], json!(650_000_000));
    assert_eq!(resolved.resolve(&NoEnvironment).expect("resolved"), resolved);
}

#[test]
fn what_a_bulk_flow_cannot_have_is_refused_with_what_it_can() {
    for (keys, part) in [
        ("cc = \"cubic\"", "\"sabul\" sets its rate itself; write \"none\""),
        ("cc = \"none\"\nstack = \"linux\"", "is TCP's, and the flow's transport is \"sabul\""),
        ("cc = \"none\"\napp_rate = \"1 Mbit/s\"", "app_rate: is not for a flow of \"sabul\""),
        ("cc = \"none\"\ntransport_options = { window = 9 }", "no option of sabul is called"),
        (
            "cc = \"none\"\narrivals = \"periodic(every=1 s)\"\nsizes = \"constant(size=1 MB)\"",
            "\"sabul\" has one transfer",
        ),
        ("cc = \"none\"\npaths = [[\"a\"], [\"a\"]]", "\"sabul\" has one path"),
    ] {
        let errors = read(&format!("{keys}\ntransport = \"sabul\"")).expect_err(keys).0;
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.iter().any(|error| error.contains(part)), "{errors:?}");
    }
}

#[test]
fn the_protocols_and_their_options_are_explained_and_in_the_schema() {
    let text = explain("rbudp").expect("a protocol");
    assert!(text.contains("transport = \"rbudp\", cc = \"none\""), "{text}");
    let text = explain("tsunami.error_rate").expect("an option");
    assert!(text.contains("Default: 7500."), "{text}");
    let flow = &schema()["properties"]["flow"]["items"]["properties"];
    assert!(flow["transport"]["enum"].to_string().contains("tsunami"));
    assert!(flow["transport_options"]["properties"]["target_rate"].is_object());
}
