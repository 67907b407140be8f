//! RBUDP (Reliable Blast UDP) by Eric He, Jason Leigh, Oliver Yu and Thomas DeFanti, "Reliable Blast UDP:
//! Predictable High Performance Bulk Data Transfer", IEEE CLUSTER 2002.
//!
//! The sender sends a whole block at a fixed rate, then `DONE` over TCP; the receiver returns a bitmap
//! of what has arrived; the sender sends what is missing, and so on until nothing is. There is no
//! reaction to congestion.
//!
//! Messages and constants are those of QUANTA 0.4 (`QUANTAnet_rbudpSender_c`, `..Receiver_c`,
//! `..Base_c`, 2003). A flow of known size is one block, as `sendfile` sends it; an unlimited one is a
//! sequence of blocks, as `sendstream` sends them. Both begin as `sendstream` does: the receiver writes
//! a byte, and each block is preceded by its length. As there, the interval between packets is a whole
//! number of microseconds, rounded down, so the rate is higher than the option says.
//!
//! Differences: datagrams that overtake the length of their block are dropped, where a socket's buffer
//! would keep some; they are sent again with the others. A block is at most 2^31 - 1 bytes, and a longer
//! flow has several.

pub mod codec;
mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;

/// Maximum bytes of a block: QUANTA counts them in an `int`.
pub(crate) const MAX_BLOCK: u64 = i32::MAX as u64;

/// The model of the paper's section 3 for a transfer without loss: the data leaves in
/// `S_total / B_send`, and the last packet and the acknowledgement take a round-trip time.
///
/// `B_best = B_send / (1 + RTT * B_send / S_total)`, bit/s, with the payload in bytes and the round-trip
/// time in seconds.
pub fn best_throughput(send_rate: f64, total_bytes: f64, rtt: f64) -> f64 {
    send_rate / (1.0 + rtt * send_rate / (8.0 * total_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 600 Mbit/s and 100 ms, 67.5 MB are sent at 90 % of the sending rate.
    #[test]
    fn the_model_has_nine_tenths_of_the_rate_at_nine_bdps_of_data() {
        let throughput = best_throughput(600e6, 67.5e6, 0.1);
        assert!((throughput / 600e6 - 0.9).abs() < 1e-12, "{throughput}");
    }
}
