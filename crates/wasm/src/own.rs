//! Algorithms in JavaScript: classes of the page's user, as those of `dumbbell.cc` in Python.
//!
//! The objects live in JavaScript (`web/src/engine/own.ts`); here they are numbers. A call passes
//! facts as numbers in an array and gets the control parameters back in its first places.

use crate::facts;
use dumbbell_cc::{
    Ack, AlgorithmFactory, AnySlowStart, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, CustomAlgorithm, Metric, Options, Path, RoundAggregator, Sent, Signal,
    WindowRule, Windowed,
};
use dumbbell_experiment::algorithm::Custom;
use dumbbell_sim::Scenario;
use dumbbell_units::Time;
use std::cell::RefCell;
use std::collections::BTreeSet;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Makes an object of a class; returns its number.
    #[wasm_bindgen(js_namespace = ["globalThis", "own"], catch)]
    fn make(class: &str, options: &str, init: &mut [f64]) -> Result<u32, JsValue>;

    /// Calls a method.
    #[wasm_bindgen(js_namespace = ["globalThis", "own"], catch)]
    fn call(object: u32, method: u32, facts: &mut [f64]) -> Result<(), JsValue>;

    /// An independent copy.
    #[wasm_bindgen(js_namespace = ["globalThis", "own"], catch)]
    fn copy(object: u32) -> Result<u32, JsValue>;

    /// The names of the internals; `call` gives their values.
    #[wasm_bindgen(js_namespace = ["globalThis", "own"], catch)]
    fn names(object: u32) -> Result<Vec<String>, JsValue>;

    /// What the class derives from: "rule", "round" or "ack".
    #[wasm_bindgen(js_namespace = ["globalThis", "own"])]
    fn tier(object: u32) -> String;

    /// The value of the option `slow_start` of a window rule.
    #[wasm_bindgen(js_namespace = ["globalThis", "own"])]
    fn slow_start(object: u32) -> String;

    /// Whether the transport spreads window reductions.
    #[wasm_bindgen(js_namespace = ["globalThis", "own"])]
    fn uses_prr(object: u32) -> bool;
}

thread_local! {
    static FAILURE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The first error of a user's code since the last call.
pub(crate) fn take_failure() -> Option<String> {
    FAILURE.with(|failure| failure.borrow_mut().take())
}

fn fail(error: &JsValue, name: &str, now: Time) {
    let text = error.as_string().unwrap_or_else(|| "the code failed".to_owned());
    let text: String = text.chars().take(1000).collect();
    let text = format!("{name}: {text}, after {now} of simulated time");
    FAILURE.with(|failure| {
        failure.borrow_mut().get_or_insert(text);
    });
}

/// Sets the factories of the flows with an algorithm of the user's code.
pub(crate) fn set_factories(scenario: &mut Scenario) {
    for flow in &mut scenario.flows {
        let is_media = flow.external.as_ref().is_some_and(|spec| spec.transport == "rtp");
        flow.endpoint_factory = is_media.then(dumbbell_rtp::endpoints);
        let Some(Ok(custom)) = Custom::parse(&flow.cc) else { continue };
        let options = serde_json::to_string(&custom.options).unwrap_or_default();
        let class = custom.class;
        flow.algorithm_factory = Some(AlgorithmFactory::boxed(move |init| {
            create(&class, &options, init).unwrap_or_else(|error| {
                fail(&error, &class, init.now);
                Box::new(Stopped)
            })
        }));
    }
}

fn create(
    class: &str,
    options: &str,
    init: &ConnectionConfig,
) -> Result<Box<dyn CustomAlgorithm>, JsValue> {
    let mut facts = [init.now.as_secs_f64(), f64::from(init.mss), init.initial_window, 0.0];
    facts[3] = (init.seed >> 11) as f64; // 53 bits, which a number of JavaScript holds
    let object = Object { number: make(class, options, &mut facts)?, name: class.to_owned() };
    let tier = tier(object.number);
    if tier != "rule" {
        let (control, uses_prr) = (facts::control_of(&facts), uses_prr(object.number));
        let controller = Controller { object, control, timer: None, uses_prr };
        return Ok(match tier.as_str() {
            "round" => Box::new(Round { controller, rounds: RoundAggregator::default() }),
            _ => Box::new(controller),
        });
    }
    let slow_start = format!("{class}(slow_start={})", slow_start(object.number))
        .parse::<Options>()
        .and_then(|mut one| AnySlowStart::from_options(&mut one, AnySlowStart::STANDARD))
        .map_err(|error| JsValue::from_str(&error.to_string()))?;
    let last = Path::new(init.mss, init.now);
    Ok(Box::new(Windowed::new(Rule { object, last }, slow_start, init)))
}

/// Replaces an algorithm that failed until the run stops.
#[derive(Clone, Debug)]
struct Stopped;

impl CongestionControl for Stopped {
    fn on_ack(&mut self, _path: &Path, _ack: &Ack) {}

    fn on_congestion(&mut self, _path: &Path, _event: &CongestionEvent) {}

    fn control(&self) -> ControlParameters {
        ControlParameters::new(1.0)
    }
}

/// The numbers of the methods, as in `own.ts`.
#[derive(Clone, Copy)]
enum Method {
    OnAck,
    OnCongestion,
    OnEstablished,
    OnSent,
    OnSpuriousLoss,
    OnTimer,
    Increase,
    Decrease,
    Observe,
    OnTimeout,
    OnUndo,
    Inspect,
    OnRound,
}

/// An object in JavaScript.
#[derive(Debug)]
struct Object {
    number: u32,
    name: String,
}

impl Clone for Object {
    fn clone(&self) -> Object {
        let number = copy(self.number).unwrap_or_else(|error| {
            fail(&error, &self.name, Time::ZERO);
            self.number
        });
        Object { number, name: self.name.clone() }
    }
}

impl Object {
    /// Calls a method, which writes its answer over the facts; nothing if it failed.
    fn call(&self, method: Method, path: &Path, event: &[f64]) -> Option<Vec<f64>> {
        self.call_rule(method, path, event, [0.0; 2])
    }

    /// Calls a method of a window rule that takes more than an event.
    fn call_rule(
        &self,
        method: Method,
        path: &Path,
        event: &[f64],
        arguments: [f64; 2],
    ) -> Option<Vec<f64>> {
        let mut facts = facts::facts(path, event, arguments);
        match call(self.number, method as u32, &mut facts) {
            Ok(()) => Some(facts),
            Err(error) => {
                fail(&error, &self.name, path.now);
                None
            }
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut facts = [0.0; 64];
        let found = names(self.number).and_then(|names| {
            call(self.number, Method::Inspect as u32, &mut facts).map(|()| names)
        });
        match found {
            Ok(names) => names.into_iter().zip(facts).for_each(|(name, value)| {
                show(Metric { name: intern(name), value });
            }),
            Err(error) => fail(&error, &self.name, Time::ZERO),
        }
    }
}

/// Makes a name static. Programs have few of them.
fn intern(name: String) -> &'static str {
    thread_local! {
        static NAMES: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    }
    NAMES.with(|names| {
        let mut names = names.borrow_mut();
        if let Some(known) = names.get(name.as_str()) {
            return *known;
        }
        let leaked: &'static str = Box::leak(name.into_boxed_str());
        names.insert(leaked);
        leaked
    })
}

/// A class that derives from `CongestionControl`.
#[derive(Clone, Debug)]
struct Controller {
    object: Object,
    control: ControlParameters,
    timer: Option<Time>,
    uses_prr: bool,
}

impl Controller {
    fn notify(&mut self, method: Method, path: &Path, event: &[f64]) {
        if let Some(facts) = self.object.call(method, path, event) {
            self.control = facts::control_of(&facts);
            let timer = Some(facts[3]).filter(|at| !at.is_nan());
            self.timer = timer.map(|at| Time::from_nanos((at * 1e9) as u64));
        }
    }
}

impl CongestionControl for Controller {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.notify(Method::OnAck, path, &facts::of_ack(ack));
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.notify(Method::OnCongestion, path, &facts::of_event(event));
    }

    fn control(&self) -> ControlParameters {
        self.control
    }

    fn on_established(&mut self, path: &Path) {
        self.notify(Method::OnEstablished, path, &[]);
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.notify(Method::OnSent, path, &facts::of_sent(sent));
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.notify(Method::OnSpuriousLoss, path, &[]);
    }

    fn on_timer(&mut self, path: &Path) {
        self.timer = None;
        self.notify(Method::OnTimer, path, &[]);
    }

    fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    fn uses_prr(&self) -> bool {
        self.uses_prr
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.object.inspect(show);
    }
}

/// A class that derives from `RoundControl`.
#[derive(Clone, Debug)]
struct Round {
    controller: Controller,
    rounds: RoundAggregator,
}

impl CongestionControl for Round {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        if let Some(round) = self.rounds.update(path, ack) {
            self.controller.notify(Method::OnRound, path, &facts::of_round(&round));
        }
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if event.new_episode || event.signal == Signal::Timeout {
            self.controller.on_congestion(path, event);
        }
    }

    fn on_established(&mut self, path: &Path) {
        self.rounds.begin(path);
    }

    fn control(&self) -> ControlParameters {
        self.controller.control()
    }

    fn uses_prr(&self) -> bool {
        self.controller.uses_prr()
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.controller.inspect(show);
    }
}

/// A class that derives from `WindowRule`.
#[derive(Clone, Debug)]
struct Rule {
    object: Object,
    /// The path at the last event, for methods without one.
    last: Path,
}

impl WindowRule for Rule {
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let facts = facts::of_ack(ack);
        let answer = self.object.call_rule(Method::Increase, path, &facts, [cwnd, acked]);
        answer.map_or(0.0, |facts| facts[0])
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.last.clone_from(path);
        let facts = facts::of_event(event);
        let answer = self.object.call_rule(Method::Decrease, path, &facts, [cwnd, 0.0]);
        answer.map_or(1.0, |facts| facts[0])
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.object.call(Method::Observe, path, &facts::of_ack(ack));
    }

    fn lowers_ssthresh(&self) -> bool {
        true
    }

    fn on_timeout(&mut self) {
        self.object.call(Method::OnTimeout, &self.last, &[]);
    }

    fn on_undo(&mut self, _path: &Path) {
        self.object.call(Method::OnUndo, &self.last, &[]);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.object.inspect(show);
    }
}
