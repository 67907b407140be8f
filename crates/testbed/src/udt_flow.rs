//! The ends of a flow over UDT.

use crate::udp_flow::{RunningEnds, StartEnds};
use dumbbell_sim::{FlowRow, FlowSpec, SeriesRow, fill_flow_row, fill_series_row};
use dumbbell_udt::io::{Error, Listener, Settings, Socket};
use dumbbell_udt::{BulkData, TransportOptions};
use dumbbell_units::Time;
use std::net::UdpSocket;
use std::time::Duration;

/// A timeout longer than any run: as in the simulator, a connection never gives up.
const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

/// An open connection, with the sockets of both ends.
struct Connection {
    sender: Socket,
    /// Time at which the sender's clock started.
    start: Time,
    listener: Listener,
    receiver: Option<Socket>,
    bytes: u64,
    payload: u64,
}

/// Prepares the ends of a flow with these options over the two sockets.
pub(crate) fn prepare(
    flow: &FlowSpec,
    options: &TransportOptions,
    [sender, receiver]: [UdpSocket; 2],
) -> StartEnds {
    let receives = Settings {
        options: options.clone(),
        algorithm: flow.cc.clone(),
        connect_timeout: NO_TIMEOUT,
        idle_timeout: NO_TIMEOUT,
        bulk: None,
        keep_received: false,
        ..Settings::default()
    };
    let mut bulk = BulkData { bytes: flow.bytes, stop: None, app_rates: flow.write_rates() };
    let stop = flow.stop_ns.map(Time::from_nanos);
    let bytes = flow.bytes.unwrap_or(u64::MAX);
    let payload = u64::from(options.max_payload());
    Box::new(move |start, _| {
        bulk.stop = stop.map(|stop| Time::ZERO + stop.since(start));
        let sends = Settings { bulk: Some(bulk), ..receives.clone() };
        let open = || {
            let listener = Listener::from_udp_socket(receiver, &receives)?;
            let sender = Socket::start_connect(sender, listener.local_addr(), &sends)?;
            Ok(Connection { sender, start, listener, receiver: None, bytes, payload })
        };
        let opened: Result<Connection, Error> = open();
        Ok(Box::new(opened.map_err(|error| error.to_string())?))
    })
}

impl Connection {
    /// Bytes that the receiver has received in order.
    fn received(&mut self) -> u64 {
        if self.receiver.is_none() {
            self.receiver = self.listener.accept(Some(Duration::ZERO)).ok();
        }
        self.receiver.as_ref().map_or(0, |receiver| receiver.statistics().receiver.bytes)
    }
}

impl RunningEnds for Connection {
    fn sample(&mut self, row: &mut SeriesRow) -> bool {
        let stats = self.sender.statistics().sender;
        fill_series_row(&stats, stats.delivered_bytes(self.payload, self.bytes), row);
        row.received = self.received();
        stats.completed.is_some()
    }

    fn inspect(&mut self, show: &mut dyn FnMut(&'static str, f64)) {
        self.sender.inspect(&mut |shown| show(shown.name, shown.value));
    }

    fn finish(&mut self, row: &mut FlowRow) {
        let mut stats = self.sender.statistics().sender;
        stats.completed = stats.completed.map(|at| self.start + at.since(Time::ZERO));
        fill_flow_row(&stats, stats.delivered_bytes(self.payload, self.bytes), row);
        row.received = self.received();
    }

    fn failure(&mut self) -> Option<String> {
        match self.sender.error() {
            None | Some(Error::Closed) => None,
            Some(error) => Some(error.to_string()),
        }
    }
}
