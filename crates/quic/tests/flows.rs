//! Flows of unmodified QUIC stacks on simulated links.

mod common;

use common::{Link, flow, run};
use serde_json::json;

#[test]
fn first() {
    let output = run(Link::default(), json!([flow("quinn", "quinn:cubic")]), 20);
    let flows: Vec<_> = output.flows.rows().collect();
    eprintln!("{flows:?}");
    for row in output.series.rows().step_by(10) {
        eprintln!("{:?}", row);
    }
}
