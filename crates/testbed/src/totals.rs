//! The totals of flows, at the end of the warm-up and at the end of a run.

use crate::error::TestbedError;
use crate::host::Host;
use crate::program::Program;
use crate::tcp_flow::TcpFlow;
use crate::transfers::TransferRuns;
use crate::udp_flow::UdpFlow;
use dumbbell_sim::FlowRow;

/// The totals of a flow, and those of its subflows by their number.
pub(crate) type FlowTotals = (FlowRow, Vec<(u32, FlowRow)>);

/// The totals so far of all flows, in their order; the emulator counts the packets of programs.
///
/// The kernel counts episodes of recovery by host, so that only a flow that has its `own_host` has
/// them, and each program, which always has one.
///
/// # Errors
/// If the counters of the host cannot be read.
pub(crate) fn totals(
    flows: &[TcpFlow],
    transfers: &mut TransferRuns,
    programs: &[Program],
    udp: &mut [UdpFlow],
    own_host: Option<&Host>,
) -> Result<Vec<FlowTotals>, TestbedError> {
    let mut totals: Vec<FlowTotals> = flows.iter().map(TcpFlow::flow_row).collect();
    totals.extend(transfers.flow_rows().into_iter().map(|row| (row, Vec::new())));
    if let ([(row, _)], Some(host)) = (&mut totals[..], own_host) {
        [row.recoveries, row.spurious, _] = host.tcp_episodes()?;
    }
    for program in programs {
        totals.push((program.flow_row()?, Vec::new()));
    }
    totals.extend(udp.iter_mut().map(|flow| (flow.flow_row(), Vec::new())));
    totals.sort_by_key(|(row, _)| row.flow);
    Ok(totals)
}

/// What was counted since earlier totals of the same flows.
pub(crate) fn since(totals: &mut [FlowTotals], earlier: &[FlowTotals]) {
    for ((row, subflows), (row_then, subflows_then)) in totals.iter_mut().zip(earlier) {
        *row = row.since(row_then);
        for (number, subflow) in subflows {
            if let Some((_, then)) = subflows_then.iter().find(|(other, _)| other == number) {
                *subflow = subflow.since(then);
            }
        }
    }
}
