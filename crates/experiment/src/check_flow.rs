//! Whether the keys of a flow fit together, and with the rest of the experiment.

use crate::algorithm::{NO_ALGORITHM, needs_marks, needs_udt, of_linux};
use crate::bulk::{BULK_TRANSPORTS, bulk_transport, overlay_bulk};
use crate::diagnostic::{KeyPath, Problem, key_path};
use crate::keys::FLOW;
use crate::model::{Experiment, Flow, Options};
use crate::options::{
    OptionErrors, TransportOption, UDT_OPTIONS, overlay_stack, overlay_udt, stack_named,
};
use crate::quantity::{RATE, TIME};
use crate::quic::{QUIC_OPTIONS, native, overlay_quic, quic_stack, stack_names};
use crate::rtp::{RTP_OPTIONS, is_media, media_names, overlay_rtp};
use crate::suggest::unknown;
use dumbbell_tcp::{MultipathSender, Stack};

/// The maximum number of subflows of a flow.
pub(crate) const MAX_PATHS: usize = MultipathSender::MAX_SUBFLOWS;
/// The maximum number of links of a path.
const MAX_LINKS: usize = 250;

/// A flow of an experiment, and the problems so far.
pub(crate) struct FlowCheck<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) flow: &'a Flow,
    pub(crate) path: KeyPath,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl FlowCheck<'_> {
    fn add(&mut self, key: &str, text: String) {
        self.problems.push(Problem::new(self.path.then(key), text));
    }

    /// Adds the same problem for each key that is given.
    fn refuse(&mut self, keys: &[(&str, bool)], text: &str) {
        for (key, _) in keys.iter().filter(|(_, is_given)| *is_given) {
            self.add(key, text.to_owned());
        }
    }

    /// Keys of plain and of multipath flows are kept apart.
    pub(crate) fn paths(&mut self) {
        let flow = self.flow;
        let Some(paths) = &flow.paths else {
            let of_several = [
                ("scheduler", flow.scheduler.is_some()),
                ("return_paths", flow.return_paths.is_some()),
                ("rtts", flow.rtts.is_some()),
            ];
            let text =
                "is for flows of several paths; write paths, such as [[\"wifi\"], [\"lte\"]]";
            return self.refuse(&of_several, text);
        };
        for (key, instead, is_given) in [
            ("path", "paths", flow.path.is_some()),
            ("return_path", "return_paths", !flow.return_path.is_empty()),
            ("rtt", "rtts", flow.rtt.is_some()),
        ] {
            if is_given {
                let text = "is given beside paths; a flow of several paths has";
                self.add(key, format!("{text} {instead}"));
            }
        }
        let count = paths.len();
        if !(2..=MAX_PATHS).contains(&count) {
            let advice = format!("write from 2 to {MAX_PATHS}, or path for a flow of one path");
            self.add("paths", format!("has {count}; {advice}"));
        }
        for (key, given) in [
            ("return_paths", flow.return_paths.as_ref().map(Vec::len)),
            ("rtts", flow.rtts.as_ref().map(Vec::len)),
        ] {
            if let Some(given) = given.filter(|given| *given != count) {
                let text = format!("has {given}, but there are {count} paths; write one for each");
                self.add(key, text);
            }
        }
        if flow.transport != "tcp" {
            let text = format!("\"{}\" has one path", flow.transport);
            self.add("transport", format!("{text}; write path, or transport = \"tcp\""));
        }
    }

    /// Paths consist of links that there are.
    pub(crate) fn links(&mut self) {
        let experiment = self.experiment;
        let links: Vec<_> = experiment.links.iter().map(|link| link.name.as_str()).collect();
        let flow = self.flow;
        if flow.path.is_none() && flow.paths.is_none() && links.len() > 1 {
            let text = format!("is missing, and there are several links: {}", links.join(", "));
            self.add("path", format!("{text}; write the ones it crosses, in order"));
        }
        let path = |key: &str| self.path.then(key);
        let one = [("path", flow.path.as_ref(), true)]
            .map(|(key, links, needed)| (path(key), links, needed));
        let back = (path("return_path"), Some(&flow.return_path), false);
        let several = [("paths", &flow.paths, true), ("return_paths", &flow.return_paths, false)]
            .into_iter()
            .flat_map(|(key, paths, needed)| {
                let paths = paths.iter().flatten().enumerate();
                paths.map(move |(at, links)| (path(key).then(at), Some(links), needed))
            });
        let routes: Vec<_> = one.into_iter().chain([back]).chain(several).collect();
        for (path, route, needed) in routes {
            let Some(route) = route else { continue };
            if route.is_empty() && needed {
                let text = "is empty; a flow crosses at least one link";
                self.problems.push(Problem::new(path.clone(), text));
            }
            if route.len() > MAX_LINKS {
                let text = format!("has {} links; the maximum is {MAX_LINKS}", route.len());
                self.problems.push(Problem::new(path.clone(), text));
            }
            for (at, name) in route.iter().enumerate() {
                if !links.contains(&name.as_str()) {
                    let text = unknown("link", name, &links);
                    self.problems.push(Problem::new(path.then(at), text));
                }
            }
        }
    }

    /// It starts before the end, and stops after the start.
    pub(crate) fn times(&mut self, jitter: u64) {
        let (experiment, flow) = (self.experiment, self.flow);
        let read = |text: &str| TIME.read(text).unwrap_or(0);
        let (start, end) = (read(&flow.start), read(&experiment.duration));
        if start >= end {
            let (start, end) = (&flow.start, &experiment.duration);
            let text = format!("\"{start}\" is not before the end of the experiment at \"{end}\"");
            self.add("start", text);
        }
        let latest = start + jitter;
        if let Some(stop) = flow.stop.as_deref().filter(|stop| read(stop) <= latest) {
            let latest = TIME.format(latest);
            self.add("stop", format!("\"{stop}\" is not after the latest start at {latest}"));
        }
    }

    /// An application has the keys that it needs, and no others.
    pub(crate) fn app(&mut self) {
        let flow = self.flow;
        if flow.ladder.is_some() && flow.app_name() != Some("video") {
            self.add("ladder", "is for app = \"video\"; write that, or leave it out".to_owned());
        }
        let Some(name) = flow.app_name() else { return };
        if name == "on-off" {
            if flow.app_rate.is_none() {
                let text = "is missing; app = \"on-off\" writes at this rate, such as \"5 Mbit/s\"";
                self.add("app_rate", text.to_owned());
            }
            let others = [
                ("app_rates", flow.app_rates.is_some()),
                ("arrivals", flow.arrivals.is_some()),
                ("sizes", flow.sizes.is_some()),
                ("command", flow.command.is_some()),
            ];
            return self.refuse(&others, "is not for app = \"on-off\"; leave it out");
        }
        if name == "requests" && flow.sizes.is_none() {
            let text = "is missing; it gives the sizes of the responses of app = \"requests\", such as \
                        \"exponential(mean=100 kB)\"";
            self.add("sizes", text.to_owned());
        }
        if flow.transport != "tcp" {
            let text = format!("\"{}\" does not carry app = \"{name}\"", flow.transport);
            self.add("transport", format!("{text}; write transport = \"tcp\""));
        }
        let others = [
            ("sizes", name == "video" && flow.sizes.is_some()),
            ("arrivals", flow.arrivals.is_some()),
            ("bytes", flow.bytes.is_some()),
            ("app_rate", flow.app_rate.is_some()),
            ("app_rates", flow.app_rates.is_some()),
            ("paths", flow.paths.is_some()),
            ("command", flow.command.is_some()),
        ];
        self.refuse(&others, &format!("is not for app = \"{name}\"; leave it out"));
    }

    /// Transfers have arrivals and sizes, are TCP's, and are all that the flow sends.
    pub(crate) fn transfers(&mut self) {
        let flow = self.flow;
        if flow.app.is_some() {
            return; // which says what it takes
        }
        let missing = match (&flow.arrivals, &flow.sizes) {
            (None, None) => return,
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(("sizes", "arrivals")),
            (None, Some(_)) => Some(("arrivals", "sizes")),
        };
        if let Some((key, other)) = missing {
            let about = FLOW.key(key).map_or("", |key| key.about);
            self.add(key, format!("is missing beside {other}; {key} is {about}"));
        }
        let one = [
            ("bytes", flow.bytes.is_some()),
            ("app_rate", flow.app_rate.is_some()),
            ("app_rates", flow.app_rates.is_some()),
            ("paths", flow.paths.is_some()),
            ("command", flow.command.is_some()),
        ];
        self.refuse(&one, "is for one transfer, and the flow has many; leave it out");
        if flow.log {
            self.add("log", "cannot be true for a flow of many transfers; leave it out".to_owned());
        }
        if flow.transport != "tcp" {
            let text = format!("\"{}\" has one transfer", flow.transport);
            self.add("transport", format!("{text}; leave it out, or arrivals and sizes"));
        }
    }

    /// Its keys are those of its transport, and its options are valid.
    pub(crate) fn transport(&mut self, is_stack_unknown: bool) {
        let flow = self.flow;
        if flow.server.is_some() && flow.command.is_none() {
            let text = "is the other end of a command, and there is none; write command";
            self.add("server", text.to_owned());
        }
        if flow.command.is_some() {
            self.command();
        }
        if flow.transport == "udp" {
            return self.udp();
        }
        if bulk_transport(&flow.transport).is_some() {
            return self.bulk();
        }
        if flow.cc == NO_ALGORITHM {
            let text = "is for flows that nothing controls, over UDP; write transport = \"udp\"";
            return self.add("cc", format!("\"{NO_ALGORITHM}\" {text}, or an algorithm"));
        }
        if flow.transport == "rtp" {
            return self.rtp();
        }
        if is_media(&flow.cc) {
            let text = format!("\"{}\" controls the rate of media", flow.cc);
            return self
                .add("cc", format!("{text}; write transport = \"rtp\", or an algorithm of it"));
        }
        if of_linux(&flow.cc).is_some() && flow.transport != "tcp" {
            let text = format!("\"{}\" is an algorithm of the kernel's TCP", flow.cc);
            return self
                .add("cc", format!("{text}; write transport = \"tcp\", or another algorithm"));
        }
        if flow.transport == "udt" {
            let overlaid = overlay_udt(&flow.cc, &flow.transport_options).map(drop);
            let path = self.path.then("transport_options");
            add_options(overlaid, &path, self.problems, |_| true);
            let of_tcp = [
                ("stack", flow.stack.is_some()),
                ("stack_options", !flow.stack_options.is_empty()),
            ];
            return self
                .refuse(&of_tcp, "is TCP's, and the flow's transport is \"udt\"; leave it out");
        }
        if flow.transport == "quic" {
            return self.quic();
        }
        if native(&flow.cc).is_some() {
            let text = format!("\"{}\" is an algorithm of a QUIC stack", flow.cc);
            self.add("cc", format!("{text}; write transport = \"quic\""));
        }
        if let Some(stack) = flow.stack.as_deref().filter(|name| quic_stack(name).is_some()) {
            let text = format!("\"{stack}\" is a QUIC stack");
            let names = Stack::NAMES.join(", ");
            self.add("stack", format!("{text}; write transport = \"quic\", or one of {names}"));
        }
        if needs_udt(&flow.cc) {
            let text = format!("\"{}\" needs what a UDT receiver reports", flow.cc);
            self.add("cc", format!("{text}; write transport = \"udt\""));
        } else if !flow.transport_options.is_empty() {
            let with_them = transports_with(&flow.transport_options);
            let advice = match with_them.is_empty() {
                true => "leave them out".to_owned(),
                false => format!("write transport = {}, or leave them out", with_them.join(" or ")),
            };
            let text = "are not TCP's, and the flow's transport is \"tcp\"";
            self.add("transport_options", format!("{text}; {advice}"));
        }
        let has_options = !flow.stack_options.is_empty() || flow.paths.is_some();
        if has_options && (flow.stack.is_some() || !is_stack_unknown) {
            self.stack_options();
        }
    }

    /// A program has its own transport, and sends what it wants.
    fn command(&mut self) {
        let flow = self.flow;
        if ["udt", "udp"].contains(&flow.transport.as_str()) {
            let text = format!("has its own transport, and the flow's is \"{}\"", flow.transport);
            self.add("command", format!("{text}; leave one of them out"));
        }
        if flow.transport == "tcp" && flow.app.is_none() && flow.arrivals.is_none() {
            let of_data = [
                ("bytes", flow.bytes.is_some()),
                ("app_rate", flow.app_rate.is_some()),
                ("app_rates", flow.app_rates.is_some()),
            ];
            self.refuse(&of_data, "is not for a command, which sends what it wants; leave it out");
        }
    }

    /// QUIC has stacks and options of its own.
    fn quic(&mut self) {
        let flow = self.flow;
        if needs_udt(&flow.cc) {
            let text = format!("\"{}\" needs what a UDT receiver reports", flow.cc);
            self.add("cc", format!("{text}; write transport = \"udt\", or another algorithm"));
        }
        if needs_marks(&flow.cc) {
            let text = format!("\"{}\" needs the number of marked packets", flow.cc);
            let advice =
                "which QUIC stacks do not report; write transport = \"tcp\", or another one";
            self.add("cc", format!("{text}, {advice}"));
        }
        if let Some(name) = flow.stack.as_deref() {
            if quic_stack(name).is_none() {
                let text =
                    format!("\"{name}\" is a TCP stack, and the flow's transport is \"quic\"");
                self.add("stack", format!("{text}; choose from {}", stack_names().join(", ")));
            } else if let Some((of, _)) = native(&flow.cc).filter(|(of, _)| of.name != name) {
                let text = format!("\"{}\" is an algorithm of {}", flow.cc, of.name);
                self.add(
                    "cc",
                    format!("{text}, and the flow's stack is \"{name}\"; write one of both"),
                );
            }
        }
        let overlaid = overlay_quic(&flow.transport_options);
        if overlaid.as_ref().is_ok_and(|options| options.datagrams) {
            if flow.app_rate.is_none() && flow.app_rates.is_none() {
                let text = "is missing; datagrams are sent at this rate, such as \"5 Mbit/s\"";
                self.add("app_rate", text.to_owned());
            }
            let of_streams = [("bytes", flow.bytes.is_some())];
            self.refuse(&of_streams, "is not for a flow of datagrams; leave it out, or write stop");
        }
        let overlaid = overlaid.map(drop);
        let path = self.path.then("transport_options");
        add_options(overlaid, &path, self.problems, |_| true);
        let of_tcp = [("stack_options", !flow.stack_options.is_empty())];
        self.refuse(&of_tcp, "is TCP's, and the flow's transport is \"quic\"; leave it out");
        let of_programs = [("command", flow.command.is_some())];
        self.refuse(
            &of_programs,
            "has its own transport, and the flow's is \"quic\"; leave one of them out",
        );
    }

    /// SABUL, RBUDP and Tsunami have a rate control of their own, and send files.
    fn bulk(&mut self) {
        let flow = self.flow;
        let name = &flow.transport;
        if flow.cc != NO_ALGORITHM {
            let text =
                format!("\"{}\" has nothing to control: \"{name}\" sets its rate itself", flow.cc);
            self.add("cc", format!("{text}; write \"{NO_ALGORITHM}\""));
        }
        let overlaid = overlay_bulk(name, &flow.transport_options).map(drop);
        let path = self.path.then("transport_options");
        add_options(overlaid, &path, self.problems, |_| true);
        let of_tcp =
            [("stack", flow.stack.is_some()), ("stack_options", !flow.stack_options.is_empty())];
        self.refuse(
            &of_tcp,
            &format!("is TCP's, and the flow's transport is \"{name}\"; leave it out"),
        );
        let of_others = [
            ("app_rate", flow.app_rate.is_some()),
            ("app_rates", flow.app_rates.is_some()),
            ("command", flow.command.is_some()),
        ];
        let advice = "which sends a file as fast as it can; leave it out";
        self.refuse(&of_others, &format!("is not for a flow of \"{name}\", {advice}"));
    }

    /// UDP sends at the rate of its application, whatever happens.
    fn udp(&mut self) {
        let flow = self.flow;
        if flow.cc != NO_ALGORITHM {
            let text = format!("\"{}\" has nothing to control in a flow over UDP", flow.cc);
            self.add("cc", format!("{text}; write \"{NO_ALGORITHM}\""));
        }
        if flow.app_rate.is_none() && flow.app_rates.is_none() {
            let text = "is missing; a flow over UDP sends at this rate, such as \"5 Mbit/s\"";
            self.add("app_rate", text.to_owned());
        }
        let of_others = [
            ("bytes", flow.bytes.is_some()),
            ("stack", flow.stack.is_some()),
            ("stack_options", !flow.stack_options.is_empty()),
            ("transport_options", !flow.transport_options.is_empty()),
        ];
        self.refuse(&of_others, "is not for a flow over UDP; leave it out");
        if flow.log {
            self.add("log", "cannot be true for a flow over UDP; leave it out".to_owned());
        }
    }

    /// Media has algorithms and options of its own, and a maximum rate.
    fn rtp(&mut self) {
        let flow = self.flow;
        if !is_media(&flow.cc) {
            let names = media_names().collect::<Vec<_>>().join(", ");
            let text = format!("\"{}\" does not control media over RTP", flow.cc);
            self.add("cc", format!("{text}; choose from {names}"));
        }
        if flow.app_rate.is_none() && flow.app_rates.is_none() {
            let text = "is missing; it is the maximum rate of the media, such as \"2.5 Mbit/s\"";
            self.add("app_rate", text.to_owned());
        }
        let overlaid = overlay_rtp(&flow.cc, &flow.transport_options);
        let path = self.path.then("transport_options");
        if let (Ok(options), Some(max)) = (&overlaid, &flow.app_rate)
            && flow.transport_options.contains_key("min_rate")
            && RATE.read(max).is_ok_and(|max| options.min_rate_bps > max)
        {
            let text = format!("is above the maximum, the flow's app_rate of {max}");
            self.problems.push(Problem::new(path.then("min_rate"), text));
        }
        add_options(overlaid.map(drop), &path, self.problems, |_| true);
        let of_others = [
            ("bytes", flow.bytes.is_some()),
            ("stack", flow.stack.is_some()),
            ("stack_options", !flow.stack_options.is_empty()),
            ("command", flow.command.is_some()),
        ];
        self.refuse(&of_others, "is not for media over RTP; leave it out");
        if flow.log {
            self.add("log", "cannot be true for media over RTP; leave it out".to_owned());
        }
    }

    fn stack_options(&mut self) {
        let (experiment, flow) = (self.experiment, self.flow);
        let (stack, mut options) = match &flow.stack {
            Some(stack) => (stack, crate::Options::new()),
            None => (&experiment.stack, experiment.stack_options.clone()),
        };
        options.extend(flow.stack_options.clone());
        let Ok(stack) = stack_named(stack) else { return };
        let path = self.path.then("stack_options");
        match overlay_stack(&stack, &options) {
            Ok(stack) if flow.paths.is_some() && stack.mss < Stack::MIN_MULTIPATH_MSS => {
                let (mss, least) = (stack.mss, Stack::MIN_MULTIPATH_MSS);
                let text = format!("{mss} bytes have no room for the data of MPTCP");
                let text = format!("{text}; a flow of several paths needs at least {least} bytes");
                let is_own = flow.stack.is_some() || flow.stack_options.contains_key("mss");
                let path = if is_own { path } else { key_path!["stack_options"] };
                self.problems.push(Problem::new(path.then("mss"), text));
            }
            overlaid => {
                // Those of the experiment are reported there.
                let is_own =
                    |option: &str| flow.stack_options.contains_key(option) || option.is_empty();
                add_options(overlaid.map(drop), &path, self.problems, is_own);
            }
        }
    }
}

/// The transports, in quotes, that have all of these options.
fn transports_with(options: &Options) -> Vec<String> {
    let bulk = BULK_TRANSPORTS.iter().map(|transport| (transport.name, transport.options));
    let every = [("udt", UDT_OPTIONS), ("quic", QUIC_OPTIONS), ("rtp", RTP_OPTIONS)];
    let has_all = |known: &[TransportOption]| {
        options.keys().all(|name| known.iter().any(|option| option.name == name))
    };
    let found = every.into_iter().chain(bulk).filter(|(_, known)| has_all(known));
    found.map(|(name, _)| format!("\"{name}\"")).collect()
}

/// Adds the problems of options that a stack or a transport does not take.
pub(crate) fn add_options(
    overlaid: Result<(), OptionErrors>,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
    is_own: impl Fn(&str) -> bool,
) {
    for (option, error) in overlaid.err().unwrap_or_default() {
        if is_own(&option) {
            problems.push(Problem::new(path.then(option.as_str()), error));
        }
    }
}
