// The algorithms of lab_own_algorithms.py in JavaScript.
class Rule extends WindowRule {
  static slow_start = "hystart";
  constructor(init, { beta = 0.5 }) {
    super(init);
    this.beta = beta;
    this.seen = 0;
    this.undone = 0;
  }
  observe(path, ack) {
    this.seen += ack.delivered;
  }
  increase(cwnd, acked, path, ack) {
    return (acked / cwnd) * (path.srtt > 2 * path.min_rtt ? 0.5 : 1);
  }
  decrease(cwnd, path, event) {
    return event.signal === "timeout" ? cwnd / 4 : cwnd * this.beta;
  }
  on_undo() {
    this.undone += 1;
  }
  inspect() {
    return { seen: this.seen, undone: this.undone };
  }
}

class Round extends RoundControl {
  constructor(init) {
    super(init);
    this.report = null;
  }
  on_round(path, report) {
    this.report = report;
    if (report.lost) this.cwnd = Math.max(this.cwnd * 0.7, 4);
    else this.cwnd += report.rtt_min !== null && report.rtt_max < 1.5 * path.min_rtt ? 2 : 0.5;
    this.pacing_rate = Math.max(1.2 * report.max_rate, 1e5);
  }
  on_congestion(path, event) {
    if (event.signal === "timeout") this.cwnd = 4;
    else if (event.send_state !== null) this.cwnd = Math.max(event.send_state.in_flight * 0.9, 4);
  }
  inspect() {
    if (this.report === null) return { number: 0 };
    const { number, start, duration, delivered, rtt_mean, rate, app_limited } = this.report;
    return { number, start, duration, delivered, rtt_mean: rtt_mean ?? -1, rate, app_limited: Number(app_limited) };
  }
}

class Control extends CongestionControl {
  static uses_prr = false;
  constructor(init) {
    super(init);
    this.ticks = this.flying = this.sent = this.spurious = this.sampled = this.siblings = 0;
  }
  on_established(path) {
    this.timer = path.now + 0.05;
  }
  on_timer(path) {
    this.ticks += 1;
    this.flying += path.in_flight;
    this.timer = path.now + 0.05;
  }
  on_sent(path, sent) {
    this.sent += sent.retransmission ? 0 : 1;
  }
  on_spurious_loss(path) {
    this.spurious += 1;
  }
  on_ack(path, ack) {
    if (path.cwnd_limited && !path.reducing) this.cwnd += ack.acked / this.cwnd;
    if (ack.rate !== null) {
      this.sampled = ack.rate.send_state.delivered + ack.rate.lost + ack.rate.interval;
      this.pacing_rate = 1.5 * ack.rate.rate;
    }
    this.siblings = path.siblings.reduce((sum, one) => sum + one.cwnd + one.srtt + one.delivered_between_losses[0], 0);
  }
  on_congestion(path, event) {
    if (event.new_episode) this.cwnd = Math.max(this.cwnd / 2, 2);
    this.ssthresh = this.cwnd;
  }
  inspect() {
    const { ticks, flying, sent, spurious, sampled, siblings } = this;
    return { ticks, flying, sent, spurious, sampled, siblings };
  }
}
