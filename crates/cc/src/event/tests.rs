use super::*;

#[test]
fn a_delayed_ack_counts_for_the_packets_that_it_delivers() {
    let ack = |delivered, acked| Ack::new(delivered).with_acked(acked);
    assert_eq!(ack(2, 1).scale_to_packets(1.0), 2.0, "a delayed acknowledgement");
    assert_eq!(ack(2, 2).scale_to_packets(2.0), 2.0, "the stack counts packets");
    assert_eq!(ack(2, 1).scale_to_packets(0.5), 1.0, "half of it was slow start's");
    assert_eq!(ack(0, 1).scale_to_packets(1.0), 1.0);
}

#[test]
fn windows_in_bytes_are_rounded_down_and_infinity_saturates() {
    let control = ControlParameters::new(3.7).with_ssthresh(2.25);
    assert_eq!((control.cwnd_bytes(1448), control.ssthresh_bytes(1448)), (5357, 3258));
    assert_eq!(ControlParameters::new(1.0).ssthresh_bytes(1448), u64::MAX);
}
