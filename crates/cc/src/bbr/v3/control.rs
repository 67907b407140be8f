//! The control parameters (draft-ietf-ccwg-bbr-06, section 5.6): pacing rate, send quantum and
//! window, computed from the model.

use super::*;

impl BbrV3 {
    pub(super) fn update_control_parameters(&mut self, path: &Path, ack: &Ack) {
        (self.pacing_gain, self.cwnd_gain) = self.gains();
        let mss = f64::from(path.mss);
        self.pacing.init_pacing_rate_from_rtt(path.srtt, self.window.cwnd, mss);
        let full = self.full_pipe.full_bw_reached;
        self.pacing.set_pacing_rate_with_gain(self.bw(), self.pacing_gain, full);
        self.set_cwnd(path, ack);
    }

    /// The pacing gain and the window gain of the state (section 5.6.1).
    pub(super) fn gains(&self) -> (f64, f64) {
        let version = &self.version;
        let cruise = self.cubic_detector.as_ref().and_then(CubicDetector::cruise_pacing_gain);
        match self.state {
            State::Startup => (version.startup_pacing_gain, version.startup_cwnd_gain),
            State::Drain => (version.drain_pacing_gain, version.startup_cwnd_gain),
            State::ProbeBwDown => (version.down_pacing_gain, version.default_cwnd_gain),
            State::ProbeBwCruise => (cruise.unwrap_or(1.0), version.default_cwnd_gain),
            State::ProbeBwRefill => (1.0, version.default_cwnd_gain),
            State::ProbeBwUp => (version.up_pacing_gain, version.up_cwnd_gain),
            State::ProbeRtt => (1.0, version.probe_rtt_cwnd_gain),
        }
    }

    pub(super) fn set_cwnd(&mut self, path: &Path, ack: &Ack) {
        let bw = self.bw();
        self.extra_acked = self.ack_aggregation.extra_acked(bw, f64::from(path.mss));
        if ack.delivered > 0 {
            let inflight_cap = self.bdp_multiple(path, bw, self.cwnd_gain) + self.extra_acked;
            let max_inflight = self.quantization_budget(path, inflight_cap);
            let full = self.full_pipe.full_bw_reached;
            let is_first_flight = (path.delivered as f64) < self.init_cwnd;
            self.window.grow_towards(max_inflight, ack.delivered, full, is_first_flight);
        }
        if self.state == State::ProbeRtt {
            self.window.bound(self.probe_rtt_cwnd(path));
        }
        self.bound_cwnd_for_model();
    }

    pub(super) fn bound_cwnd_for_model(&mut self) {
        let mut cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
        };
        if self.version.inflight_shortterm {
            cap = cap.min(self.inflight_shortterm);
        }
        self.window.bound(cap);
    }

    pub(super) fn probe_rtt_cwnd(&self, path: &Path) -> f64 {
        let gain = self.version.probe_rtt_cwnd_gain;
        self.bdp_multiple(path, self.bw(), gain).max(MIN_PIPE_CWND)
    }

    pub(super) fn bdp_multiple(&self, path: &Path, bw: Rate, gain: f64) -> f64 {
        bdp_multiple(bw, self.min_rtt.min_rtt, gain, f64::from(path.mss), self.init_cwnd)
    }

    /// Packets that must be in flight for `inflight_cap` to be in the network: at least three bursts,
    /// one in the sender's queue, one in its segmentation offload, one in the receiver's reassembly.
    /// Two more in UP, so that even a small BDP is exceeded.
    pub(super) fn quantization_budget(&self, path: &Path, inflight_cap: f64) -> f64 {
        let offload_budget = 3.0 * self.send_quantum(path);
        let inflight_cap = inflight_cap.max(offload_budget).max(MIN_PIPE_CWND);
        if self.state == State::ProbeBwUp { inflight_cap + 2.0 } else { inflight_cap }
    }

    /// Inflight: `gain` times the BDP at `bw`, with the quantization budget.
    pub(super) fn inflight(&self, path: &Path, bw: Rate, gain: f64) -> f64 {
        self.quantization_budget(path, self.bdp_multiple(path, bw, gain))
    }

    /// TargetInflight: the BDP with the quantization budget, or the window if congestion cut it below.
    pub(super) fn target_inflight(&self, path: &Path) -> f64 {
        self.inflight(path, self.bw(), 1.0).min(self.window.cwnd)
    }

    /// InflightWithHeadroom: `inflight_longterm` less the headroom for other flows, at least one packet.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.inflight_longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        let headroom = (self.version.headroom * longterm).max(1.0);
        libm::floor(longterm - headroom).max(MIN_PIPE_CWND)
    }

    pub(super) fn min_tso_segs(&self) -> f64 {
        self.pacing.min_tso_segs(self.version.min_tso_rate)
    }

    pub(super) fn send_quantum(&self, path: &Path) -> f64 {
        self.pacing.send_quantum(self.min_tso_segs(), f64::from(path.mss))
    }

    pub(super) fn packets_in_net_at_edt(&self, path: &Path, in_flight: u32) -> f64 {
        let departing = if self.pacing_gain > 1.0 { self.send_quantum(path) } else { 0.0 };
        packets_in_net_at_edt(path, in_flight, self.bw(), departing)
    }
}
