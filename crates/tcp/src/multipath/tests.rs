//! Multipath connections over paths that lose packets, fail and recover.

use super::*;
use crate::{Flags, Segment, Stack};
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A path with a rate, a delay, a queue, random losses and an outage.
#[derive(Clone, Debug)]
struct PathSpec {
    /// Transmission time of a packet, us.
    packet_us: u64,
    delay_ms: u64,
    queue: usize,
    /// One packet in `loses_one_in` is lost; 0 for none.
    loses_one_in: u64,
    /// Begin and end of the outage, ms.
    fails: (u64, u64),
}

const GOOD_PATH: PathSpec = PathSpec {
    packet_us: 500,
    delay_ms: 10,
    queue: 50,
    loses_one_in: 0,
    fails: (u64::MAX, u64::MAX),
};

/// Paths, the two endpoints, and an application that checks the data it reads.
struct Network {
    paths: Vec<PathSpec>,
    sender: MultipathSender,
    receiver: MultipathReceiver,
    window: u32,
    now: Time,
    /// Segments in flight by arrival time and order: towards the receiver or not, path, segment.
    flights: BTreeMap<(Time, u64), (bool, u8, Segment)>,
    count: u64,
    /// End of transmission of each packet queued on each path.
    free_at: Vec<Vec<Time>>,
    /// DSN and payload that each packet of each subflow carried first.
    carried: HashMap<(u8, u32), (u64, u16)>,
    /// Ends of the payloads received, by DSN.
    arrived: BTreeMap<u64, u64>,
    read: u64,
    /// Data packets sent by each subflow.
    sent: Vec<u64>,
    /// When each subflow sent data for the first time.
    first_data: Vec<Time>,
}

impl Network {
    fn new(
        paths: &[PathSpec],
        packets: u64,
        window: u32,
        scheduler: Scheduler,
        cc: &str,
    ) -> Network {
        let stack = Stack { receive_window: window, ..Stack::linux() }.of_subflow();
        let stack = Arc::new(stack);
        let mss = u32::from(stack.mss);
        let init = ConnectionConfig::new(Time::ZERO, mss).with_seed(1);
        let algorithm = |_| Algorithm::parse(cc, &init).expect("a built-in algorithm");
        let receiver = MultipathReceiver::new(&stack, scheduler, paths.len() as u8);
        let sender = MultipathSender::new(MultipathConfig {
            algorithms: paths.iter().map(algorithm).collect(),
            scheduler,
            start: Time::ZERO,
            stop: None,
            bytes: Some(packets * u64::from(stack.mss) - 7),
            app_rates: Vec::new(),
            stack,
        });
        Network {
            paths: paths.to_vec(),
            sender,
            receiver,
            window,
            now: Time::ZERO,
            flights: BTreeMap::new(),
            count: 0,
            free_at: vec![Vec::new(); paths.len()],
            carried: HashMap::new(),
            arrived: BTreeMap::new(),
            read: 0,
            sent: vec![0; paths.len()],
            first_data: vec![Time::MAX; paths.len()],
        }
    }

    /// DSN and payload of a packet.
    fn data_of(&self, segment: &Segment) -> (u64, u16) {
        (segment.dsn(), segment.size - self.receiver.stack().header)
    }

    fn send(&mut self, port: u8, segment: Segment) {
        let path = &self.paths[usize::from(port)];
        if !segment.is_control() {
            self.sent[usize::from(port)] += 1;
            let first_data = &mut self.first_data[usize::from(port)];
            *first_data = self.now.min(*first_data);
            let data = self.data_of(&segment);
            let first = *self.carried.entry((port, segment.number)).or_insert(data);
            assert_eq!(first, data, "a retransmission carries what the original did");
        }
        self.count += 1;
        let ms = self.now.as_nanos() / 1_000_000;
        let fails = (path.fails.0..path.fails.1).contains(&ms);
        // A fixed hash stands for chance.
        let chance = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let lost = path.loses_one_in > 0 && chance.is_multiple_of(path.loses_one_in);
        let queued = &mut self.free_at[usize::from(port)];
        queued.retain(|&at| at > self.now);
        if fails || lost || queued.len() > path.queue {
            return;
        }
        let begins = queued.last().copied().unwrap_or(self.now);
        let ends = begins + Span::from_micros(path.packet_us);
        queued.push(ends);
        let arrives = ends + Span::from_millis(path.delay_ms);
        self.flights.insert((arrives, self.count), (true, port, segment));
    }

    fn reply(&mut self, port: u8, segment: Segment) {
        let path = &self.paths[usize::from(port)];
        self.count += 1;
        if (path.fails.0..path.fails.1).contains(&(self.now.as_nanos() / 1_000_000)) {
            return;
        }
        let arrives = self.now + Span::from_millis(path.delay_ms);
        self.flights.insert((arrives, self.count), (false, port, segment));
    }

    fn read(&mut self, port: u8, segment: &Segment) {
        if !segment.is_control() {
            let (dsn, payload) = self.data_of(segment);
            let end = dsn + u64::from(payload);
            let window = u64::from(self.window + 1) * u64::from(self.receiver.stack().mss);
            assert!(end <= self.read + window, "the receive window is kept");
            let known = self.arrived.entry(dsn).or_default();
            *known = end.max(*known);
        }
        self.receiver.handle_on_port(self.now, port, segment);
        let received = self.receiver.received_bytes();
        while self.read < received {
            let (start, end) = self.arrived.pop_first().expect("what is read has arrived");
            assert!(start <= self.read, "what is read has arrived");
            // A repetition may end later, and wait for packets of its subflow.
            if end > received {
                self.arrived.insert(received, end);
            }
            self.read = self.read.max(end.min(received));
        }
    }

    /// Runs until all data is acknowledged and returns that time. Fails after ten simulated minutes.
    fn run(&mut self) -> Time {
        loop {
            while let Some(segment) = self.sender.poll(self.now) {
                self.send(self.sender.outgoing_port(), segment);
            }
            while let Some(segment) = self.receiver.poll(self.now) {
                self.reply(self.receiver.outgoing_port(), segment);
            }
            if let Some(completed) = self.sender.stats().completed {
                return completed;
            }
            let timers = self.sender.next_timeout().min(self.receiver.next_timeout());
            let arrival = self.flights.keys().next().map_or(Time::MAX, |&(at, _)| at);
            let next = timers.min(arrival);
            assert!(next < Time::ZERO + Span::from_secs(600), "it comes to an end");
            self.now = self.now.max(next);
            if arrival <= timers
                && let Some((_, (to_receiver, port, segment))) = self.flights.pop_first()
            {
                match to_receiver {
                    true => self.read(port, &segment),
                    false => self.sender.handle_on_port(self.now, port, &segment),
                }
            }
        }
    }
}

fn any_path() -> impl Strategy<Value = PathSpec> {
    let fails = prop_oneof![
        Just((u64::MAX, u64::MAX)),
        (0u64..2000, 100u64..5000).prop_map(|(from, length)| (from, from + length)),
    ];
    let losses = prop_oneof![Just(0), 10u64..1000];
    (100u64..2000, 1u64..100, 3usize..100, losses, fails).prop_map(
        |(packet_us, delay_ms, queue, loses_one_in, fails)| PathSpec {
            packet_us,
            delay_ms,
            queue,
            loses_one_in,
            fails,
        },
    )
}

fn any_scheduler() -> impl Strategy<Value = Scheduler> {
    (0..Scheduler::NAMES.len())
        .prop_map(|at| Scheduler::named(Scheduler::NAMES[at]).expect("one of the names"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The first subflow opens the connection, so it does not fail at the very beginning.
    #[test]
    fn the_application_reads_every_byte_once_and_in_order(
        paths in prop::collection::vec(any_path(), 1..4),
        packets in 1u64..3000,
        window in prop_oneof![4u32..64, 64u32..2000],
        scheduler in any_scheduler(),
        cc in prop::sample::select(vec!["reno", "cubic", "bbr"]),
    ) {
        let mut network = Network::new(&paths, packets, window, scheduler, cc);
        network.run();
        let bytes = packets * u64::from(network.receiver.stack().mss) - 7;
        prop_assert_eq!(network.read, bytes);
        prop_assert_eq!(network.sender.stats().acked_bytes, bytes);
    }
}

#[test]
fn two_equal_paths_carry_data_twice_as_fast_as_one() {
    let time = |paths: &[PathSpec]| {
        let mut network = Network::new(paths, 20_000, 10_000, Scheduler::LowestRtt, "reno");
        network.run().as_secs_f64()
    };
    let (one, two) = (time(&[GOOD_PATH]), time(&[GOOD_PATH, GOOD_PATH]));
    assert!((1.85..2.05).contains(&(one / two)), "{one} and {two} s");
}

/// When the second of two paths carries data for the first time, ms.
fn second_path_begins(fails: (u64, u64)) -> u64 {
    let second = PathSpec { fails, ..GOOD_PATH };
    let mut network = Network::new(&[GOOD_PATH, second], 1000, 1000, Scheduler::LowestRtt, "reno");
    network.run();
    network.first_data[1].as_nanos() / 1_000_000
}

/// RFC 8684, sections 3.1 and 3.2, with 20.5 ms between a packet and its acknowledgement: two round trips
/// until data of the first subflow is acknowledged, two until the other one's third acknowledgement is.
#[test]
fn a_subflow_carries_data_after_four_round_trips() {
    assert_eq!(second_path_begins(GOOD_PATH.fails), 82);
}

/// The third acknowledgement leaves after 61.5 ms; two round-trip times later, in jiffies, again.
#[test]
fn a_lost_third_acknowledgement_is_repeated() {
    let begins = second_path_begins((61, 62));
    assert!((82 + 41..82 + 41 + 8).contains(&begins), "{begins}");
}

/// By Linux's default scheduler (__mptcp_retrans) after the connection's timeout.
#[test]
fn packets_of_a_dead_path_are_reinjected_after_its_timeout() {
    for scheduler in [Scheduler::LowestRtt, Scheduler::Default] {
        let dead = PathSpec { fails: (500, 1_000_000), ..GOOD_PATH };
        let mut network = Network::new(&[dead, GOOD_PATH], 5000, 1000, scheduler, "reno");
        let end = network.run().as_secs_f64();
        assert!(network.sender.stats().reinjected > 0, "{scheduler:?}");
        // 5000 packets take 2.5 s by one path; half a second of it had two.
        assert!(end < 3.5, "{scheduler:?}: {end} s");
    }
}

/// Further timeouts of a dead path do not reinject a packet again (`MPTCP_REINJECT`), although the
/// other path takes seconds for its backlog.
#[test]
fn packets_of_a_dead_path_are_reinjected_once() {
    let dead = PathSpec {
        packet_us: 100,
        delay_ms: 50,
        queue: 1000,
        fails: (1000, 1_000_000),
        ..GOOD_PATH
    };
    let other = PathSpec { packet_us: 4000, queue: 1000, ..GOOD_PATH };
    let mut network = Network::new(&[other, dead], 20_000, 10_000, Scheduler::LowestRtt, "reno");
    network.run();
    let given = network.carried.iter().filter(|((port, _), _)| *port == 0);
    let numbers: Vec<u64> = given.map(|(_, &(dsn, _))| dsn).collect();
    let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
    assert!(network.sender.stats().reinjected > 100, "{:?}", network.sender.stats());
    assert!(network.sender.subflow_stats(1).timeouts > 2);
    assert_eq!(numbers.len(), distinct.len(), "{:?}", network.sender.stats());
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let path = PathSpec { fails: (500, 1500), ..GOOD_PATH };
    let mut network = Network::new(&[GOOD_PATH, path], 20_000, 1000, Scheduler::LowestRtt, "reno");
    network.run();
    assert!(network.sent[1] > 5000, "{:?}", network.sent);
}

#[test]
fn round_robin_takes_turns_and_redundant_sends_everything_everywhere() {
    let sent = |scheduler, packets| {
        let mut network = Network::new(&[GOOD_PATH, GOOD_PATH], packets, 10_000, scheduler, "reno");
        network.run();
        network.sent
    };
    // The first path has a head start until the other has joined.
    let lead = |packets| {
        let turns = sent(Scheduler::RoundRobin, packets);
        turns[0].abs_diff(turns[1])
    };
    let (early, late) = (lead(1000), lead(10_000));
    assert!(late.abs_diff(early) <= 60, "{early}, {late}");
    let both = sent(Scheduler::Redundant, 1000);
    assert!(both[0] >= 990 && both[1] >= 900, "{both:?}");
}

/// The application writes into page fragments with 32,728 bytes of data, and MPTCP_SEND_BURST_SIZE is two of
/// them; a full send buffer ends a burst after one.
#[test]
fn the_default_scheduler_assigns_whole_page_fragments() {
    const FRAGMENT: u64 = 32_728;
    let mut network =
        Network::new(&[GOOD_PATH, GOOD_PATH], 20_000, 10_000, Scheduler::Default, "reno");
    network.run();
    let mut carried: Vec<_> =
        network.carried.iter().map(|((port, _), &(dsn, len))| (dsn, len, *port)).collect();
    // Until then the receive window grows, and ends many bursts.
    carried.retain(|&(dsn, ..)| dsn >= FRAGMENT * 400);
    carried.sort_unstable();
    let runs = carried.chunk_by(|a, b| a.2 == b.2).skip(1);
    let bytes = runs.map(|run| run.iter().map(|&(_, len, _)| u64::from(len)).sum::<u64>());
    let beyond: Vec<_> = bytes.map(|bytes| bytes % FRAGMENT).collect();
    let whole = beyond.iter().filter(|&&beyond| beyond == 0).count();
    assert!(10 * whole > 9 * beyond.len(), "{beyond:?}");
}

/// Two subflows that are connected, and what a packet of one is acknowledged with.
struct TwoSubflows {
    receiver: MultipathReceiver,
    stack: Arc<Stack>,
    now: Time,
    numbers: [u32; 2],
}

impl TwoSubflows {
    fn new(receive_window: u32) -> TwoSubflows {
        TwoSubflows::with(Stack { receive_window, delayed_ack: false, ..Stack::linux() })
    }

    fn with(stack: Stack) -> TwoSubflows {
        let stack = Arc::new(stack.of_subflow());
        let receiver = MultipathReceiver::new(&stack, Scheduler::Default, 2);
        let mut both = TwoSubflows { receiver, stack, now: Time::ZERO, numbers: [0; 2] };
        for port in 0..2 {
            both.handle(port, Segment { flags: Flags::SYN, ..Segment::default() });
        }
        both
    }

    fn handle(&mut self, port: u8, segment: Segment) -> Segment {
        self.receiver.handle_on_port(self.now, port, &segment);
        self.receiver.poll(self.now).expect("a reply")
    }

    /// The next packet of a subflow, which carries this full packet of the connection.
    fn segment(&mut self, port: u8, packet: u64, flags: Flags) -> Segment {
        let number = self.numbers[usize::from(port)];
        self.numbers[usize::from(port)] += 1;
        let size = self.stack.mss + self.stack.header;
        let mut segment = Segment { number, size, flags, ..Segment::default() };
        segment.set_dsn(packet * u64::from(self.stack.mss));
        segment
    }

    /// The data acknowledgement and the window that answer such a packet, full packets.
    fn data(&mut self, port: u8, packet: u64) -> (u64, u64) {
        let segment = self.segment(port, packet, Flags::default());
        let mss = u64::from(self.stack.mss);
        let (next, window) = self.handle(port, segment).data_ack(packet * mss, &self.stack);
        (next / mss, window / mss)
    }

    /// Both receive packets in order until no acknowledgement is quick, and acknowledge all of them.
    fn receive_first(&mut self, packets: u64) {
        for packet in 0..packets {
            self.acknowledged((packet / 2 % 2) as u8, packet, Flags::default());
        }
        self.now += Span::from_millis(50); // The timer of a delayed acknowledgement has expired.
        while self.receiver.poll(self.now).is_some() {}
    }

    /// The ports of the acknowledgements that follow it, and the last window, full packets.
    fn acknowledged(&mut self, port: u8, packet: u64, flags: Flags) -> (Vec<u8>, Option<u64>) {
        let segment = self.segment(port, packet, flags);
        self.receiver.handle_on_port(self.now, port, &segment);
        let (mut ports, mut window) = (Vec::new(), None);
        while let Some(ack) = self.receiver.poll(self.now) {
            ports.push(self.receiver.outgoing_port());
            window = Some(ack.data_ack(0, &self.stack).1 / u64::from(self.stack.mss));
        }
        (ports, window)
    }
}

/// mptcp_space: what waits for data of the other path occupies the buffer that all subflows advertise.
#[test]
fn data_that_waits_for_another_path_narrows_the_window() {
    let mut both = TwoSubflows::new(90);
    let grown = (0..100).map(|dsn| both.data((dsn % 2) as u8, dsn)).last();
    assert_eq!(grown, Some((100, 88)));
    // Packets 111 to 115 wait for 100 to 110; the end of the window, 188, does not move back.
    let waiting = (111..116).map(|dsn| both.data(1, dsn));
    assert_eq!(waiting.collect::<Vec<_>>(), [(100, 88); 5]);
    let windows = (100..111).map(|dsn| both.data(0, dsn));
    let mut expected: Vec<_> = (101..111).map(|next| (next, 83.max(188 - next))).collect();
    // All six are acknowledged before they are read.
    expected.push((116, 83));
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

/// As in a capture of Linux 6.18 with a buffer of 20 packets: the window of 18 packets becomes one of 16
/// in the round trip after the second subflow has joined, and of 18 after data has arrived there.
#[test]
fn a_subflow_without_data_narrows_the_window() {
    let mut both = TwoSubflows::new(20);
    let mut window_after = |port, dsn| {
        both.now += Span::from_millis(10);
        both.data(port, dsn).1
    };
    assert_eq!((0..20).map(|dsn| window_after(0, dsn)).last(), Some(18));
    let third_ack = Segment { flags: Flags::ACK, ..Segment::default() };
    both.handle(1, third_ack);
    let mut window_after = |port, dsn| {
        both.now += Span::from_millis(10);
        both.data(port, dsn).1
    };
    assert_eq!((20..30).map(|dsn| window_after(0, dsn)).last(), Some(16));
    window_after(1, 30);
    assert_eq!((31..40).map(|dsn| window_after(0, dsn)).last(), Some(18));
}

/// In captures of Linux 6.18 one packet is acknowledged only if it ends a write and nothing waits: 1,016 of
/// 1,016 times. Then other ends of writes are acknowledged too, 315 times.
#[test]
fn the_end_of_a_write_is_acknowledged_once_all_data_is_read() {
    let mut both = TwoSubflows::with(Stack { receive_window: 90, ..Stack::linux() });
    both.receive_first(100);
    assert_eq!(both.acknowledged(0, 100, Flags::PSH), (vec![0], Some(88)));
    assert_eq!(both.acknowledged(1, 102, Flags::PSH), (vec![], None));
    assert_eq!(both.acknowledged(0, 101, Flags::PSH), (vec![0, 1], Some(88)));
}

/// So it is if packets take no room of a buffer.
#[test]
fn the_end_of_a_write_is_acknowledged_without_a_receive_buffer() {
    let mut both = TwoSubflows::with(Stack { autotuning: false, ..Stack::linux() });
    for dsn in 0..100 {
        both.acknowledged(0, dsn, Flags::default());
    }
    assert_eq!(both.acknowledged(0, 100, Flags::PSH).0, [0]);
}

/// In the same captures most pairs are acknowledged after they are read, if packets wait: 355 of 422 windows
/// with two packets waiting have room for all but these two, 67 for one less.
#[test]
fn a_pair_that_narrows_the_window_is_acknowledged_after_it_is_read() {
    let mut both = TwoSubflows::with(Stack { receive_window: 90, ..Stack::linux() });
    both.receive_first(100);
    // 120 to 129 wait, so that the window narrows to 80 after 8 more packets.
    for dsn in 120..130 {
        both.acknowledged(1, dsn, Flags::default());
    }
    let windows = (100..116).filter_map(|dsn| both.acknowledged(0, dsn, Flags::default()).1);
    assert_eq!(windows.collect::<Vec<_>>(), [86, 84, 82, 80, 79, 79, 79, 79]);
}

/// Paths of 10 ms and 400 ms, with a receive window that the slow one fills.
fn lopsided(scheduler: Scheduler) -> Network {
    let slow = PathSpec { packet_us: 2000, delay_ms: 200, queue: 400, ..GOOD_PATH };
    let fast = PathSpec { delay_ms: 5, queue: 20, ..GOOD_PATH };
    let mut network = Network::new(&[fast, slow], 10_000, 150, scheduler, "reno");
    network.run();
    network
}

#[test]
fn opportunistic_retransmission_unblocks_the_receive_window() {
    let stats = lopsided(Scheduler::LowestRtt).sender.stats();
    assert!(stats.opportunistic > 0 && stats.penalties > 0, "{stats:?}");
}

/// `path_mask` names the subflow of the packet that blocks the window, although packets before it are
/// not acknowledged on their own path yet: here some 300, whose acknowledgements take 200 ms.
#[test]
fn a_slow_path_is_penalised_while_its_acknowledgements_are_in_flight() {
    let slow = PathSpec { packet_us: 600, delay_ms: 200, queue: 400, ..GOOD_PATH };
    let fast = PathSpec { packet_us: 250, delay_ms: 5, ..GOOD_PATH };
    let mut network = Network::new(&[fast, slow], 40_000, 1000, Scheduler::LowestRtt, "reno");
    network.run();
    let stats = network.sender.stats();
    assert!(stats.opportunistic > 100 && stats.penalties > 10, "{stats:?}");
}

#[test]
fn blest_skips_a_slow_path_that_would_block_the_window() {
    let slow = |scheduler| {
        let network = lopsided(scheduler);
        (network.sent[1], network.now)
    };
    let (plain, blest) = (slow(Scheduler::LowestRtt), slow(Scheduler::Blest));
    assert!(blest.0 < plain.0 && blest.1 < plain.1, "{plain:?} {blest:?}");
}

#[test]
fn ecf_waits_for_the_fast_path_when_that_completes_earlier() {
    let end = |scheduler| {
        let slow = PathSpec { delay_ms: 200, ..GOOD_PATH };
        let fast = PathSpec { delay_ms: 5, ..GOOD_PATH };
        Network::new(&[fast, slow], 6000, 10_000, scheduler, "reno").run()
    };
    let (plain, ecf) = (end(Scheduler::LowestRtt), end(Scheduler::Ecf));
    assert!(ecf < plain, "{plain:?} {ecf:?}");
}

/// A backlog beyond the send buffer is not there yet: with all 40,000 packets at hand ECF would not wait.
#[test]
fn ecf_waits_while_there_is_more_data_than_the_send_buffer_holds() {
    let sent = |scheduler| {
        let slow = PathSpec { delay_ms: 200, ..GOOD_PATH };
        let fast = PathSpec { delay_ms: 5, ..GOOD_PATH };
        let mut network = Network::new(&[fast, slow], 40_000, 10_000, scheduler, "reno");
        network.run();
        network.sent[1]
    };
    let (plain, ecf) = (sent(Scheduler::LowestRtt), sent(Scheduler::Ecf));
    assert!(10 * ecf < plain, "{plain} {ecf}");
}
