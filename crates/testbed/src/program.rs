//! A flow that is another program's: it runs in the sender's namespace, and if need be another one
//! in the receiver's. What its connections show is what the emulator saw of their packets.

use crate::emulator::Seen;
use crate::error::TestbedError;
use crate::host::{Host, Side};
use crate::netlink::SocketTable;
use dumbbell_sim::{FlowPlan, FlowRow, FlowSpec, SeriesRow};
use dumbbell_units::Time;
use rustix::process::{Pid, Signal, kill_process_group};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A program that sends, with the hosts that it runs between.
pub(crate) struct Program {
    pub(crate) number: u32,
    plan: FlowPlan,
    stop: Time,
    command: String,
    sender: Arc<Host>,
    /// The sockets of the sender's host.
    sockets: SocketTable,
    server: Option<Child>,
    child: Option<Child>,
    /// What its sockets last told of retransmissions.
    last: FlowRow,
    is_over: bool,
    failure: Option<String>,
}

/// A command for the shell, with the addresses of both ends filled in.
fn filled_in(text: &str, path: u32) -> String {
    let address = |side: Side| Ipv4Addr::from(side.address(path)).to_string();
    text.replace("{sender}", &address(Side::Sender)).replace("{server}", &address(Side::Receiver))
}

/// Starts a command in a host; what it prints is not kept.
fn spawn(host: &Host, command: &str) -> Result<Child, TestbedError> {
    host.enter(|| {
        Command::new("/bin/sh")
            .args(["-c", command])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(TestbedError::failed("started a program"))
    })
}

impl Program {
    /// The program of a flow; its server is started at once, so that it listens in time.
    pub(crate) fn new(
        number: u32,
        flow: &FlowSpec,
        command: &str,
        plan: FlowPlan,
        [sender, receiver]: [&Arc<Host>; 2],
    ) -> Result<Program, TestbedError> {
        let server = flow.server.as_ref();
        let server = server.map(|server| spawn(receiver, &filled_in(server, plan.pair)));
        let open = || SocketTable::open().map_err(TestbedError::failed("asked for sockets"));
        Ok(Program {
            number,
            stop: flow.stop_ns.map_or(Time::MAX, Time::from_nanos),
            command: filled_in(command, plan.pair),
            sockets: sender.enter(open)?,
            sender: Arc::clone(sender),
            server: server.transpose()?,
            child: None,
            last: FlowRow::default(),
            is_over: false,
            failure: None,
            plan,
        })
    }

    pub(crate) fn start(&self) -> Time {
        self.plan.start
    }

    pub(crate) fn plan(&self) -> &FlowPlan {
        &self.plan
    }

    /// Starts or stops the program if it is time to, and says when it is next.
    pub(crate) fn act(&mut self, now: Time) -> Result<Time, TestbedError> {
        if now < self.plan.start {
            return Ok(self.plan.start);
        }
        if self.child.is_none() && !self.is_over {
            self.child = Some(spawn(&self.sender, &self.command)?);
        }
        if now < self.stop {
            return Ok(self.stop);
        }
        if !self.is_over {
            self.end();
        }
        Ok(Time::MAX)
    }

    /// Looks at its sockets: windows and counters are sums over those that are open.
    pub(crate) fn observe(&mut self, t: f64) -> SeriesRow {
        let [srtt, min_rtt, ssthresh] = [f32::NAN; 3];
        let mut row =
            SeriesRow { flow: self.number, t, srtt, min_rtt, ssthresh, ..SeriesRow::default() };
        [row.rtt, row.pacing_rate] = [f32::NAN; 2];
        for info in self.sockets.dump().unwrap_or_default() {
            let mut of = SeriesRow::default();
            info.observe(true, &mut of);
            if of.delivered == 0 && of.in_flight == 0 {
                continue;
            }
            [row.srtt, row.min_rtt, row.ssthresh] = [of.srtt, of.min_rtt, of.ssthresh];
            row.add(&of);
            row.delivered += of.delivered;
        }
        row.received = row.delivered;
        let (retransmitted, lost) = (row.retransmitted, row.lost);
        if row.sent > 0 {
            self.last = FlowRow { retransmitted, lost, ..self.last };
        }
        row
    }

    /// What became of it, as far as the emulator `seen` it.
    pub(crate) fn conclude(&self, seen: &Seen) -> FlowRow {
        FlowRow {
            flow: self.number,
            start: self.plan.start.as_secs_f64(),
            sent: seen.sent_packets,
            delivered: seen.delivered,
            received: seen.delivered,
            ..self.last
        }
    }

    /// Ends it and its server.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        for mut child in self.child.take().into_iter().chain(self.server.take()) {
            let ended = child.try_wait().ok().flatten();
            if let Some(status) = ended.filter(|status| !status.success()) {
                self.failure = Some(status.to_string());
            }
            // It may have ended by itself, and then there is nothing to end.
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
        }
    }

    /// How it failed, if it did before it was ended.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.end();
        self.failure.take()
    }
}
