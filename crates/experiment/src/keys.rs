//! The keys of an experiment file: one table, from which it is read, written, described as a JSON
//! Schema and explained.

use crate::diagnostic::{KeyPath, Step};
use serde_json::{Map, Value};

/// A table of an experiment file.
#[derive(Debug)]
pub struct Table {
    /// Its name: `experiment`, `link` or `flow`.
    pub name: &'static str,
    /// Its keys, in the order in which they are written.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// Its value if it is not given.
    pub default: DefaultValue,
    /// What it is, as the rest of a sentence that begins with the key and "is".
    pub about: &'static str,
}

/// The value of a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// It must be given.
    Required,
    /// None; the text says what that means.
    Absent(&'static str),
    /// This text.
    Text(&'static str),
    /// This number.
    Number(f64),
    /// This whole number.
    Count(u64),
    /// No.
    No,
    /// An empty list.
    EmptyList,
    /// An empty table.
    EmptyTable,
}

/// The kind of values that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Printable text, not empty.
    Name,
    /// True or false.
    Bool,
    /// A whole number of 1 or more.
    Count,
    /// A count of seeds, or a list of them.
    Seeds,
    /// A time above zero.
    Period,
    /// A time.
    Time,
    /// A rate above zero.
    Rate,
    /// A size above zero.
    Size,
    /// The size of a queue.
    Queue,
    /// Pairs of time and rate.
    Rates,
    /// Pairs of time and rate, or a file of them.
    AppRates,
    /// Pairs of time and delay.
    Reroutes,
    /// A file, or a list of times in ms.
    Trace,
    /// A probability, or a loss process.
    Loss,
    /// A template of a link.
    Template,
    /// A medium that a link shares.
    Medium,
    /// Active queue management.
    Aqm,
    /// An arrival process of transfers, or their times.
    Arrivals,
    /// A distribution of the sizes of transfers, or its points.
    Sizes,
    /// An application.
    App,
    /// A list of rates.
    Ladder,
    /// A share and a delay.
    Reorder,
    /// A congestion control algorithm.
    Algorithm,
    /// The name of a DiffServ code point.
    Dscp,
    /// A scheduler of multipath connections.
    Scheduler,
    /// `tcp`, `udt`, `udp`, `quic`, `rtp`, `sabul`, `rbudp` or `tsunami`.
    Transport,
    /// The name of a TCP stack.
    Stack,
    /// The name of a TCP or QUIC stack.
    FlowStack,
    /// Fields of a stack.
    StackOptions,
    /// Options of UDT, QUIC, media, SABUL, RBUDP or Tsunami.
    TransportOptions,
    /// Names of links.
    Path,
    /// Lists of names of links.
    Paths,
    /// A list of times above zero.
    Periods,
    /// A table of texts.
    Texts,
    /// One `[[link]]` table or more.
    Links,
    /// One `[[flow]]` table or more.
    Flows,
}

impl Table {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

const fn key(name: &'static str, kind: Kind, default: DefaultValue, about: &'static str) -> Key {
    Key { name, kind, default, about }
}

/// The keys at the top of a file.
pub static EXPERIMENT: Table = Table {
    name: "experiment",
    keys: &[
        key("title", Kind::Text, DefaultValue::Text(""), "what the experiment is about"),
        key("duration", Kind::Period, DefaultValue::Required, "how long it runs, such as \"60 s\""),
        key(
            "seeds",
            Kind::Seeds,
            DefaultValue::Count(1),
            "how many seeds to run it with, or which ones, such as [1, 2, 3]",
        ),
        key(
            "sample",
            Kind::Period,
            DefaultValue::Absent("\"100 ms\", or more if this gave over a million rows"),
            "the interval at which the flows are sampled, such as \"100 ms\"",
        ),
        key(
            "warmup",
            Kind::Time,
            DefaultValue::Absent("everything counts"),
            "how much of the start does not count in metrics and in the table of flows, such as \
             \"10 s\"",
        ),
        key(
            "internals",
            Kind::Bool,
            DefaultValue::Absent("true with 100 flows or fewer"),
            "whether the algorithms' internals are sampled too, true or false",
        ),
        key(
            "start_jitter",
            Kind::Time,
            DefaultValue::Text("0 s"),
            "the maximum of a random delay of each flow's start, such as \"100 ms\"",
        ),
        key(
            "stack",
            Kind::Stack,
            DefaultValue::Text("linux"),
            "the TCP stack of flows that name none, such as \"linux\"",
        ),
        key(
            "stack_options",
            Kind::StackOptions,
            DefaultValue::EmptyTable,
            "fields of the stack, such as { pacing = true }; not for flows that name a stack of \
             their own",
        ),
        key("link", Kind::Links, DefaultValue::Required, "one [[link]] table or more"),
        key("flow", Kind::Flows, DefaultValue::Required, "one [[flow]] table or more"),
        key(
            "assumed",
            Kind::Texts,
            DefaultValue::EmptyTable,
            "settings that a paper does not state: key = reason",
        ),
        key(
            "calibrated",
            Kind::Texts,
            DefaultValue::EmptyTable,
            "settings found by matching a paper: key = reason",
        ),
        key(
            "sources",
            Kind::Texts,
            DefaultValue::EmptyTable,
            "algorithms that are not built in and the SHA-256 of their source; written when the \
             experiment is resolved, and then it runs with no other",
        ),
    ],
};

/// The keys of a link.
pub static LINK: Table = Table {
    name: "link",
    keys: &[
        key("name", Kind::Name, DefaultValue::Required, "the link's name, such as \"bottleneck\""),
        key(
            "template",
            Kind::Template,
            DefaultValue::Absent("the keys below"),
            "a kind of path that stands for the keys below, such as \"leo\" or \"wifi(stations=2)\"; \
             keys that are written beside it take precedence",
        ),
        key("rate", Kind::Rate, DefaultValue::Absent("no limit"), "a rate such as \"100 Mbit/s\""),
        key(
            "rates",
            Kind::Rates,
            DefaultValue::Absent("one rate"),
            "instead of a rate, a schedule of times and rates, such as \
             [[\"0 s\", \"10 Mbit/s\"], [\"5 s\", \"2 Mbit/s\"]]",
        ),
        key(
            "trace",
            Kind::Trace,
            DefaultValue::Absent("no trace"),
            "instead of a rate, a file in mahimahi's format, or its list of times in ms: at each \
             of them 1500 bytes may leave; it repeats",
        ),
        key(
            "burst",
            Kind::Size,
            DefaultValue::Absent("no token bucket: every packet takes its transmission time"),
            "the depth of a token bucket, such as \"15 kB\": the burst that leaves at once after a pause",
        ),
        key(
            "delay",
            Kind::Time,
            DefaultValue::Text("0 s"),
            "the one-way propagation delay, such as \"50 ms\"",
        ),
        key(
            "reroutes",
            Kind::Reroutes,
            DefaultValue::Absent("one route"),
            "a schedule of times and new propagation delays, such as [[\"60 s\", \"80 ms\"]]",
        ),
        key(
            "queue",
            Kind::Queue,
            DefaultValue::Absent("\"unlimited\" with an aqm and \"1 BDP\" without"),
            "the limit of the queue, such as \"0.5 BDP\", \"100 packets\", \"64 kB\", \"10 ms\", \
             \"unlimited\", or \"none\", with which a burst makes a policer; a BDP is the rate times the longest base RTT of the flows that cross \
             the link",
        ),
        key(
            "aqm",
            Kind::Aqm,
            DefaultValue::Absent("tail drop"),
            "active queue management, such as \"codel\" or \"fq_codel(target=5 ms, ecn=off)\", or \
             \"none\"",
        ),
        key(
            "loss",
            Kind::Loss,
            DefaultValue::Number(0.0),
            "the probability that a packet is lost at random, such as 0.0001 or \"1e-4\", or \
             losses in bursts, such as \"gilbert-elliott(p=1e-4, r=0.3)\", or a schedule of times \
             and probabilities, such as [[\"0 s\", 0.001], [\"15 s\", 0]]",
        ),
        key(
            "jitter",
            Kind::Time,
            DefaultValue::Text("0 s"),
            "the maximum of a random extra delay that keeps the order of packets, such as \"5 ms\"",
        ),
        key(
            "reorder",
            Kind::Reorder,
            DefaultValue::Absent("no reordering"),
            "the share of packets that are delayed, and for how long, such as \"1 % by 10 ms\"; \
             others overtake them",
        ),
        key(
            "medium",
            Kind::Medium,
            DefaultValue::Absent("none: a transmitter of its own"),
            "a medium that the link shares, such as Wi-Fi's, \"csma(stations=2)\": frames are sent \
             several at once, after contention",
        ),
    ],
};

/// The keys of a flow.
pub static FLOW: Table = Table {
    name: "flow",
    keys: &[
        key(
            "name",
            Kind::Name,
            DefaultValue::Absent("flow-1, flow-2, ..."),
            "the flow's name, such as \"first\"",
        ),
        key(
            "cc",
            Kind::Algorithm,
            DefaultValue::Required,
            "the congestion control algorithm, such as \"cubic\", \"cubic(slow_start=standard)\", or one \
             of your own, \"my_module:MyCC\" or \"my_file.py:MyCC\"; with real packets also any \
             of the kernel, \"linux:NAME\", or an eBPF object, \"linux:my_file.o\"; over QUIC also one of \
             the stack, such as \"quinn:cubic\"; \"scream\" or \"gcc\" for media over RTP; \"none\" over UDP",
        ),
        key(
            "path",
            Kind::Path,
            DefaultValue::Absent("the link, if there is only one"),
            "the links that its data crosses, such as [\"bottleneck\"]",
        ),
        key(
            "paths",
            Kind::Paths,
            DefaultValue::Absent("one path"),
            "instead of path, the paths of the subflows of a multipath connection, such as \
             [[\"wifi\"], [\"lte\"]]",
        ),
        key(
            "scheduler",
            Kind::Scheduler,
            DefaultValue::Absent("\"default\""),
            "which subflow takes the next packets, such as \"default\" (Linux's) or \"lowest-rtt\"; for flows with paths",
        ),
        key(
            "return_paths",
            Kind::Paths,
            DefaultValue::Absent("no links"),
            "for each of paths the links that acknowledgements cross, such as [[\"up\"], []]",
        ),
        key(
            "rtts",
            Kind::Periods,
            DefaultValue::Absent("twice the delay of each path"),
            "for each of paths its round-trip time without queues, such as [\"30 ms\", \"60 ms\"]",
        ),
        key(
            "return_path",
            Kind::Path,
            DefaultValue::EmptyList,
            "the links that its acknowledgements cross, such as [\"up\"]",
        ),
        key(
            "sender",
            Kind::Name,
            DefaultValue::Absent("a host of its own"),
            "the host that sends its data, such as \"laptop\"; for queues that share a rate between hosts (cake)",
        ),
        key(
            "receiver",
            Kind::Name,
            DefaultValue::Absent("a host of its own"),
            "the host that receives its data",
        ),
        key(
            "dscp",
            Kind::Dscp,
            DefaultValue::Absent("\"CS0\", best effort"),
            "the DiffServ code point of its packets in both directions, such as \"EF\"; for queues with tins (cake)",
        ),
        key(
            "rtt",
            Kind::Period,
            DefaultValue::Absent("twice the delay of its path"),
            "the round-trip time without queues, such as \"100 ms\"",
        ),
        key("start", Kind::Time, DefaultValue::Text("0 s"), "when it starts, such as \"30 s\""),
        key("stop", Kind::Period, DefaultValue::Absent("never"), "when it stops, such as \"90 s\""),
        key(
            "bytes",
            Kind::Size,
            DefaultValue::Absent("no limit"),
            "the amount of data that it sends, such as \"10 MB\"",
        ),
        key(
            "arrivals",
            Kind::Arrivals,
            DefaultValue::Absent("one transfer"),
            "when transfers arrive, if the flow consists of many, each by a connection of its own: \
             a process such as \"poisson(load=0.5)\" or \"poisson(every=20 ms)\", or times after \
             the start such as [\"0 s\", \"1.5 s\"]; with sizes",
        ),
        key(
            "sizes",
            Kind::Sizes,
            DefaultValue::Absent("one transfer"),
            "how large those transfers are: a distribution such as \"exponential(mean=100 kB)\" or \
             \"web-search\", or sizes with the share of transfers that are no larger, such as \
             [[\"10 kB\", 0.5], [\"1 MB\", 1]]; with arrivals, or of the responses of \
             app = \"requests\"",
        ),
        key(
            "app",
            Kind::App,
            DefaultValue::Absent("data without a pause, or at app_rate"),
            "its application: \"requests(think=1 s)\" with sizes, \"video(buffer=30 s)\", or \
             \"on-off(on=1 s, off=2 s)\" with app_rate",
        ),
        key(
            "ladder",
            Kind::Ladder,
            DefaultValue::Absent("nine rates from 235 kbit/s to 5 Mbit/s"),
            "the rates of the video of app = \"video\", such as [\"1 Mbit/s\", \"3 Mbit/s\"]",
        ),
        key(
            "app_rate",
            Kind::Rate,
            DefaultValue::Absent("no limit"),
            "the rate at which its application writes, such as \"5 Mbit/s\"; the maximum rate of media \
             over RTP",
        ),
        key(
            "app_rates",
            Kind::AppRates,
            DefaultValue::Absent("one rate"),
            "instead of app_rate, a schedule of times after its start (TCP: after the handshake) and rates, such as \
             [[\"0 s\", \"5 Mbit/s\"], [\"10 s\", \"0 bit/s\"]], or a file with a time (s) and a rate (bit/s) \
             in each line",
        ),
        key(
            "repeat",
            Kind::Count,
            DefaultValue::Count(1),
            "how many such flows there are, such as 10",
        ),
        key(
            "transport",
            Kind::Transport,
            DefaultValue::Text("tcp"),
            "its transport, \"tcp\", \"udt\", \"quic\", \"rtp\" for media, \"sabul\", \"rbudp\", \"tsunami\", \
             or \"udp\", which sends at its app_rate whatever happens",
        ),
        key(
            "transport_options",
            Kind::TransportOptions,
            DefaultValue::EmptyTable,
            "options of UDT, such as { receive_buffer = 20000 }, of QUIC, such as \
             { mtu_discovery = false }, of media, such as { fps = 30, ecn = \"l4s\" }, or of a bulk \
             transfer protocol, such as { rate = \"1 Gbit/s\" }",
        ),
        key(
            "stack",
            Kind::FlowStack,
            DefaultValue::Absent("that of the experiment; over QUIC that of its cc, or \"quinn\""),
            "its TCP stack, such as \"linux\", or its QUIC stack, \"quinn\" or \"noq\"",
        ),
        key(
            "stack_options",
            Kind::StackOptions,
            DefaultValue::EmptyTable,
            "fields of its stack, such as { pacing = true }",
        ),
        key(
            "log",
            Kind::Bool,
            DefaultValue::No,
            "whether each of its packets is recorded, true or false",
        ),
        key(
            "command",
            Kind::Text,
            DefaultValue::Absent("the kernel's TCP"),
            "with real packets, the program that is its sender, such as \
             \"iperf3 -c {server} -t 30\"",
        ),
        key(
            "server",
            Kind::Text,
            DefaultValue::Absent("the kernel's TCP"),
            "the program that is its receiver, such as \"iperf3 -s -1\"; for flows with command",
        ),
    ],
};

/// The table and the key that a path leads to, and whether it leads to the whole key.
pub(crate) fn key_of(path: &KeyPath) -> Option<(&'static Table, &str, bool)> {
    match path.0.as_slice() {
        [Step::Key(kind), Step::Index(_), Step::Key(name), rest @ ..] => {
            let table = if *kind == LINK.name { &LINK } else { &FLOW };
            Some((table, name, rest.is_empty()))
        }
        [Step::Key(name), rest @ ..] => Some((&EXPERIMENT, name, rest.is_empty())),
        _ => None,
    }
}

impl DefaultValue {
    /// The value, if there is one.
    pub fn value(self) -> Option<Value> {
        match self {
            DefaultValue::Required | DefaultValue::Absent(_) => None,
            DefaultValue::Text(text) => Some(Value::from(text)),
            DefaultValue::Number(number) => Some(Value::from(number)),
            DefaultValue::Count(count) => Some(Value::from(count)),
            DefaultValue::No => Some(Value::Bool(false)),
            DefaultValue::EmptyList => Some(Value::Array(Vec::new())),
            DefaultValue::EmptyTable => Some(Value::Object(Map::new())),
        }
    }
}

impl Key {
    /// A value of the right type for a key that is absent or not valid.
    pub(crate) fn placeholder(&self) -> Value {
        match (self.default.value(), self.kind) {
            (Some(value), _) => value,
            (None, Kind::Links | Kind::Flows) => Value::Array(Vec::new()),
            (None, _) if self.default == DefaultValue::Required => Value::from(""),
            (None, _) => Value::Null,
        }
    }
}
