//! Dumbbells over UDT instead of TCP.

use dumbbell_sim::Scenario;
use dumbbell_udt::TransportOptions;

/// The same flows over UDT, with buffers that do not limit them.
pub fn over_udt(mut scenario: Scenario) -> Scenario {
    for flow in &mut scenario.flows {
        let buffer = 1 << 20;
        let options = TransportOptions::for_algorithm(&flow.cc);
        flow.udt = Some(TransportOptions {
            window: buffer,
            send_buffer: buffer,
            receive_buffer: buffer,
            ..options
        });
    }
    scenario
}
