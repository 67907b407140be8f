//! Runs a flow beside another implementation of its algorithm, which is a program: it reads an event a
//! line and answers each with its window and its slow start threshold.
//!
//! `beside CC PROGRAM ours|theirs < SCENARIO` simulates the scenario (JSON), in which the flows with `"cc":
//! "beside"` have the algorithm CC. Their window is that of `ours` or of `theirs`; the other one receives the
//! same events. Prints the time (s) and both windows (packets) after each acknowledgement, and at the end a
//! line for each flow. `scripts/references` has programs around Linux's modules.

use dumbbell_cc::{
    Ack, Algorithm, AlgorithmFactory, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, Metric, Path, Sent, Signal,
};
use dumbbell_sim::{Factories, Scenario};
use dumbbell_units::{Span, Time};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

/// The program, and its last answer.
#[derive(Debug)]
struct Peer {
    stdin: BufWriter<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    _child: Child,
    cwnd: f64,
    ssthresh: f64,
}

impl Peer {
    fn new(program: &str) -> std::io::Result<Peer> {
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = BufWriter::new(child.stdin.take().expect("it is piped"));
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Peer { stdin, stdout, _child: child, cwnd: 0.0, ssthresh: f64::INFINITY })
    }

    fn answer(&mut self, event: &str) -> Result<(), Box<dyn Error>> {
        self.stdin.write_all(event.as_bytes())?;
        self.stdin.flush()?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let (cwnd, ssthresh) = line.trim_end().split_once(' ').ok_or("no answer")?;
        (self.cwnd, self.ssthresh) = (cwnd.parse()?, ssthresh.parse()?);
        Ok(())
    }
}

/// An algorithm beside a program.
#[derive(Clone, Debug)]
struct Beside {
    ours: Algorithm,
    theirs: Arc<Mutex<Peer>>,
    theirs_leads: bool,
    /// As the last event had it.
    path: Path,
    mss: u32,
    seed: u64,
}

impl Beside {
    fn new(config: &ConnectionConfig, cc: &str, program: &str, theirs_leads: bool) -> Beside {
        let ours = Algorithm::parse(cc, config).expect("main has parsed it");
        let peer = Peer::new(program).expect("the program starts");
        let (mss, seed) = (config.mss, config.seed);
        let (theirs, path) = (Arc::new(Mutex::new(peer)), Path::new(mss, config.now));
        Beside { ours, theirs, theirs_leads, path, mss, seed }
    }

    /// The columns are those of `struct event` in `scripts/references/peer.c`.
    fn tell(&mut self, kind: char, path: &Path, ack: &Ack, detail: u64) {
        let rtt = ack.rtt.map_or(-1, |rtt| rtt.as_nanos() as i64);
        self.path.clone_from(path);
        let since = ack.rate.map_or(0, |rate| path.delivered - rate.send_state.delivered);
        let columns = [
            path.now.as_nanos(),
            path.una,
            path.next_seq,
            path.ca_state as u64,
            path.in_flight.into(),
            path.cwnd_limited.into(),
            ack.acked.into(),
            path.srtt.map_or(0, Span::as_nanos),
            since,
            self.mss.into(),
            self.ours.control().cwnd as u64,
            detail,
        ];
        let mut line = format!("{kind} {rtt}");
        for column in columns {
            write!(line, " {column}").expect("writing to a string cannot fail");
        }
        let siblings = &path.multipath.siblings;
        write!(line, " {}", siblings.len()).expect("writing to a string cannot fail");
        for sibling in siblings {
            let (cwnd, rtt) = (sibling.cwnd as u64, sibling.srtt.as_nanos());
            write!(line, " {cwnd} {rtt}").expect("writing to a string cannot fail");
        }
        line.push('\n');
        let mut theirs = self.theirs.lock().expect("no other thread");
        theirs.answer(&line).expect("the program answers every event");
        if kind == 'A' {
            let (now, ours) = (path.now.since(Time::ZERO).as_secs_f64(), self.ours.control().cwnd);
            println!("{now:.6},{ours:.4},{}", theirs.cwnd);
        }
    }
}

impl CongestionControl for Beside {
    fn on_established(&mut self, path: &Path) {
        self.tell('I', path, &Ack::default(), self.seed);
        self.ours.on_established(path);
    }

    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.ours.on_ack(path, ack);
        self.tell('A', path, ack, 0);
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.ours.on_congestion(path, event);
        match event.signal {
            Signal::Loss if event.new_episode => self.tell('L', path, &Ack::default(), 1),
            Signal::Loss => {}
            Signal::Timeout => self.tell('T', path, &Ack::default(), event.new_episode.into()),
            Signal::Ecn => self.tell('E', path, &Ack::default(), event.new_episode.into()),
        }
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.ours.on_sent(path, sent);
        if sent.from_idle {
            // CA_EVENT_TX_START comes before the packet is counted.
            let mut before = path.clone();
            before.next_seq -= u64::from(!sent.retransmission);
            before.in_flight -= 1;
            self.tell('S', &before, &Ack::default(), sent.app_limited.into());
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.ours.on_spurious_loss(path);
        self.tell('U', path, &Ack::default(), 0);
    }

    /// Nothing is in flight: the path is still that of the last acknowledgement.
    fn on_restart_after_idle(&mut self, cwnd: f64) {
        self.ours.on_restart_after_idle(cwnd);
        let path = self.path.clone();
        self.tell('R', &path, &Ack::default(), cwnd as u64);
    }

    fn control(&self) -> ControlParameters {
        if !self.theirs_leads {
            return self.ours.control();
        }
        let (ours, theirs) = (self.ours.control(), self.theirs.lock().expect("no other thread"));
        let cwnd = theirs.cwnd.max(1.0);
        // Per packet of the window, both pace alike.
        let pacing_rate = ours.pacing_rate.map(|rate| rate * (cwnd / ours.cwnd));
        ControlParameters::new(cwnd).with_ssthresh(theirs.ssthresh).with_pacing_rate(pacing_rate)
    }

    fn uses_prr(&self) -> bool {
        self.ours.uses_prr()
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.ours.inspect(show);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cc, program, leads] = <[String; 3]>::try_from(arguments)
        .map_err(|_| "usage: beside CC PROGRAM ours|theirs < SCENARIO.json")?;
    Algorithm::parse(&cc, &ConnectionConfig::new(Time::ZERO, 1448))?;
    let mut json = String::new();
    std::io::stdin().read_to_string(&mut json)?;
    let theirs = leads == "theirs";
    let make = move |config: &ConnectionConfig| Beside::new(config, &cc, &program, theirs);
    let algorithms = BTreeMap::from([("beside".to_owned(), AlgorithmFactory::new(make))]);
    let factories = Factories { algorithms, ..Factories::default() };
    let scenario = Scenario::from_json_with(&json, &factories)?;
    let flows = scenario.run()?.flows;
    for (flow, delivered) in flows.delivered.iter().enumerate() {
        let goodput = *delivered as f64 * 8e9 / scenario.duration_ns as f64 / 1e6;
        let delay = flows.queue_delay_mean[flow].unwrap_or(0.0) * 1e3;
        println!("flow,{flow},{goodput:.4},{delay:.4},{}", flows.retransmitted[flow]);
    }
    Ok(())
}
