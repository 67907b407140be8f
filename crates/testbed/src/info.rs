//! `TCP_INFO` and `MPTCP_INFO` of kernel sockets (include/uapi/linux/tcp.h and mptcp.h).
//!
//! The structures grow with every kernel; fields that an older kernel lacks read as 0.

use crate::sys::getsockopt;
use dumbbell_sim::{FlowRow, SeriesRow};
use dumbbell_units::Span;
use std::io;
use std::os::fd::AsFd;

const TCP_INFO: i32 = 11;
const MPTCP_INFO: i32 = 1;
/// `union tcp_cc_info` of the algorithm.
const TCP_CC_INFO: i32 = 26;
/// The size of `struct tcp_bbr_info` in Linux (include/uapi/linux/inet_diag.h).
const BBR_INFO_BYTES: usize = 20;
const MPTCP_TCPINFO: i32 = 2;
const MPTCP_SUBFLOW_ADDRS: i32 = 3;
const SOL_MPTCP: i32 = 284;
/// Size of the buffer for a `struct tcp_info`, bytes; leaves space for fields of later kernels.
const TCP_INFO_BYTES: usize = 512;
/// Maximum number of subflows of a connection in Linux: the first, and those to 8 addresses
/// (MPTCP_PM_ADDR_MAX).
pub(crate) const MAX_SUBFLOWS: usize = 9;
/// Linux's value of ssthresh before the first congestion event.
const TCP_INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

// Offsets in a struct tcp_info, bytes.
const TCPI_CA_STATE: usize = 1;
const TCPI_SND_MSS: usize = 16;
const TCPI_UNACKED: usize = 24;
const TCPI_SACKED: usize = 28;
const TCPI_LOST: usize = 32;
const TCPI_RETRANS: usize = 36;
const TCPI_RTT: usize = 68;
const TCPI_SND_SSTHRESH: usize = 76;
const TCPI_SND_CWND: usize = 80;
const TCPI_TOTAL_RETRANS: usize = 100;
const TCPI_PACING_RATE: usize = 104;
const TCPI_BYTES_ACKED: usize = 120;
const TCPI_NOTSENT_BYTES: usize = 144;
const TCPI_MIN_RTT: usize = 148;
const TCPI_DATA_SEGS_OUT: usize = 156;
const TCPI_DELIVERY_RATE: usize = 160;
const TCPI_TOTAL_RTO: usize = 240;

// Offsets in a struct mptcp_info, bytes.
const MPTCPI_WRITE_SEQ: usize = 16;
const MPTCPI_SND_UNA: usize = 24;
const MPTCPI_BYTES_ACKED: usize = 72;

/// A `struct tcp_info` (or `struct mptcp_info`) as the kernel wrote it.
#[derive(Clone, Copy)]
pub(crate) struct TcpInfo([u8; TCP_INFO_BYTES]);

impl TcpInfo {
    /// `TCP_INFO` of a plain TCP socket.
    pub(crate) fn of(socket: impl AsFd) -> io::Result<TcpInfo> {
        let mut info = TcpInfo([0; TCP_INFO_BYTES]);
        getsockopt(socket, libc::IPPROTO_TCP, TCP_INFO, &mut info.0)?;
        Ok(info)
    }

    /// A `struct tcp_info` from a netlink attribute, truncated or zero-padded.
    pub(crate) fn from_bytes(bytes: &[u8]) -> TcpInfo {
        let mut info = TcpInfo([0; TCP_INFO_BYTES]);
        let len = bytes.len().min(TCP_INFO_BYTES);
        info.0[..len].copy_from_slice(&bytes[..len]);
        info
    }

    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[offset + i])
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_ne_bytes(self.bytes(offset))
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(offset))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(offset))
    }

    /// Payload bytes delivered, cumulatively or selectively. `tcpi_bytes_acked` counts the SYN as a
    /// byte.
    fn delivered_bytes(&self) -> u64 {
        let (sacked, mss) = (u64::from(self.u32(TCPI_SACKED)), u64::from(self.u32(TCPI_SND_MSS)));
        self.u64(TCPI_BYTES_ACKED).saturating_sub(1) + sacked * mss
    }

    /// Bytes that were written but not sent yet.
    pub(crate) fn unsent_bytes(&self) -> u32 {
        self.u32(TCPI_NOTSENT_BYTES)
    }

    /// Bytes that a window sends in `span`; `None` before there is a round-trip time.
    pub(crate) fn bytes_in(&self, span: Span) -> Option<u64> {
        let window = u64::from(self.u32(TCPI_SND_CWND)) * u64::from(self.u32(TCPI_SND_MSS));
        (window * span.as_nanos() / 1000).checked_div(self.u32(TCPI_RTT).into())
    }

    /// Fills in the sender's columns; the pacing rate only if the sender is paced.
    ///
    /// The latest RTT stays NaN, because `TCP_INFO` lacks it. `lost` is the number of
    /// retransmissions, because `TCP_INFO` has no lifetime count of packets marked lost.
    pub(crate) fn fill_series_row(&self, is_paced: bool, row: &mut SeriesRow) {
        let ssthresh = self.u32(TCPI_SND_SSTHRESH);
        let pacing_rate = self.u64(TCPI_PACING_RATE);
        let has_pacing_rate = is_paced && pacing_rate != u64::MAX;
        let min_rtt = self.u32(TCPI_MIN_RTT);
        let is_infinite = ssthresh >= TCP_INFINITE_SSTHRESH;
        let outstanding = self.u32(TCPI_UNACKED) + self.u32(TCPI_RETRANS);
        let retransmitted = u64::from(self.u32(TCPI_TOTAL_RETRANS));
        *row = SeriesRow {
            cwnd: self.u32(TCPI_SND_CWND) as f32,
            ssthresh: if is_infinite { f32::INFINITY } else { ssthresh as f32 },
            srtt: seconds(self.u32(TCPI_RTT)),
            rtt: f32::NAN,
            min_rtt: if min_rtt == u32::MAX { f32::NAN } else { seconds(min_rtt) },
            pacing_rate: if has_pacing_rate { pacing_rate as f32 * 8.0 } else { f32::NAN },
            delivery_rate: self.u64(TCPI_DELIVERY_RATE) as f32 * 8.0,
            in_flight: outstanding.saturating_sub(self.u32(TCPI_SACKED) + self.u32(TCPI_LOST)),
            sent: u64::from(self.u32(TCPI_DATA_SEGS_OUT)),
            retransmitted,
            lost: retransmitted,
            delivered: self.delivered_bytes(),
            ca_state: self.0[TCPI_CA_STATE],
            ..*row
        };
    }

    /// Fills in the sender's totals at the end of a run.
    pub(crate) fn fill_flow_row(&self, row: &mut FlowRow) {
        let retransmitted = u64::from(self.u32(TCPI_TOTAL_RETRANS));
        *row = FlowRow {
            sent: u64::from(self.u32(TCPI_DATA_SEGS_OUT)),
            retransmitted,
            lost: retransmitted,
            delivered: self.delivered_bytes(),
            timeouts: u32::from(self.u16(TCPI_TOTAL_RTO)),
            ..*row
        };
    }
}

/// Seconds from microseconds; NaN for 0, which means "no sample yet".
fn seconds(us: u32) -> f32 {
    if us == 0 { f32::NAN } else { us as f32 / 1e6 }
}

/// `TCP_INFO` of each subflow of an MPTCP connection, with the subflow's local address.
pub(crate) fn subflows(socket: impl AsFd) -> io::Result<Vec<([u8; 4], TcpInfo)>> {
    let infos = subflow_array::<TCP_INFO_BYTES>(&socket, MPTCP_TCPINFO)?;
    let addresses = subflow_array::<256>(&socket, MPTCP_SUBFLOW_ADDRS)?;
    // A struct sockaddr_in: family, port, address.
    let address = |pair: &[u8; 256]| [pair[4], pair[5], pair[6], pair[7]];
    Ok(addresses.iter().map(address).zip(infos.into_iter().map(TcpInfo)).collect())
}

/// Reads an MPTCP socket option that is an array with one structure of at most `N` bytes per
/// subflow, behind a `struct mptcp_subflow_data`.
fn subflow_array<const N: usize>(socket: impl AsFd, option: i32) -> io::Result<Vec<[u8; N]>> {
    const HEADER: usize = 16;
    let mut reply = vec![0; HEADER + MAX_SUBFLOWS * N];
    // size_subflow_data and size_user.
    reply[0..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
    reply[12..16].copy_from_slice(&(N as u32).to_ne_bytes());
    getsockopt(socket, SOL_MPTCP, option, &mut reply)?;
    let u32_at = |offset: usize| {
        u32::from_ne_bytes([reply[offset], reply[offset + 1], reply[offset + 2], reply[offset + 3]])
    };
    let (num_subflows, size_user) = (u32_at(4) as usize, (u32_at(12) as usize).clamp(1, N));
    let entries = reply[HEADER..].chunks_exact(size_user).take(num_subflows);
    let padded = |bytes: &[u8]| {
        let mut entry = [0; N];
        entry[..size_user].copy_from_slice(bytes);
        entry
    };
    Ok(entries.map(padded).collect())
}

/// Bytes acknowledged at the connection level of MPTCP (`struct mptcp_info`), of those `written`.
pub(crate) fn acknowledged_bytes(socket: impl AsFd, written: u64) -> io::Result<u64> {
    let mut info = TcpInfo([0; TCP_INFO_BYTES]);
    let len = getsockopt(socket, SOL_MPTCP, MPTCP_INFO, &mut info.0)?;
    Ok(acknowledged_of(&info, len, written))
}

/// As [`acknowledged_bytes`], from the `len` bytes that the kernel wrote.
fn acknowledged_of(info: &TcpInfo, len: usize, written: u64) -> u64 {
    if len >= MPTCPI_BYTES_ACKED + 8 {
        return info.u64(MPTCPI_BYTES_ACKED);
    }
    // Before Linux 6.5 there are sequence numbers only, which begin at random.
    let outstanding = info.u64(MPTCPI_WRITE_SEQ).wrapping_sub(info.u64(MPTCPI_SND_UNA));
    written.saturating_sub(outstanding)
}

/// Shows what a BBR of the kernel reports of itself, in a `struct tcp_bbr_info`; nothing of other
/// algorithms, and nothing before the connection is established.
///
/// BBRv3's kernel has further fields behind the same first ones. The state of Linux's own BBR
/// (tcp_bbr.c) is told by its gains, which are in 256ths: 2/ln 2 is Startup's pacing gain and its
/// inverse Drain's, and only ProbeRTT has a window gain of 1. Before the first acknowledgement both are 0.
pub(crate) fn inspect_bbr(socket: impl AsFd, show: &mut dyn FnMut(&'static str, f64)) {
    let [startup, drain, probe_bw, probe_rtt] = [0.0, 1.0, 2.0, 3.0];
    let mut bytes = [0; 64];
    let is_v1 = match getsockopt(socket, libc::IPPROTO_TCP, TCP_CC_INFO, &mut bytes) {
        Ok(len) if len >= BBR_INFO_BYTES => len == BBR_INFO_BYTES,
        _ => return,
    };
    let mut words = bytes.chunks_exact(4).map(|w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]]));
    let mut next = || words.next().unwrap_or_default();
    let bw = f64::from(next()) + f64::from(next()) * 2f64.powi(32);
    let [min_rtt, pacing_gain, cwnd_gain] = [next(), next(), next()];
    if is_v1 {
        let state = match (pacing_gain, cwnd_gain) {
            (739 | 0, _) => startup,
            (88, _) => drain,
            (_, 256) => probe_rtt,
            _ => probe_bw,
        };
        show("state", state);
    }
    show("bw", bw);
    show("min_rtt", if min_rtt == u32::MAX { 0.0 } else { f64::from(min_rtt) / 1e6 });
    show("pacing_gain", f64::from(pacing_gain) / 256.0);
    show("cwnd_gain", f64::from(cwnd_gain) / 256.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_columns_of_a_loopback_connection_are_those_of_the_kernel() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        let (mut server, _) = listener.accept()?;
        let sample = |client: &TcpStream| {
            let mut row = SeriesRow::default();
            TcpInfo::of(client).map(|info| {
                info.fill_series_row(false, &mut row);
                row
            })
        };
        // RFC 6928: the initial window is 10 packets.
        let row = sample(&client)?;
        assert_eq!((row.cwnd, row.ssthresh, row.sent), (10.0, f32::INFINITY, 0));
        client.write_all(&[0; 1000])?;
        server.read_exact(&mut [0; 1000])?;
        // The reply acknowledges the data, so nothing is in flight afterwards.
        server.write_all(&[0])?;
        client.read_exact(&mut [0])?;
        let row = sample(&client)?;
        assert_eq!((row.sent, row.delivered, row.in_flight, row.lost), (1, 1000, 0, 0));
        assert!(0.0 < row.min_rtt && row.min_rtt <= row.srtt, "{row:?}");
        assert!(row.pacing_rate.is_nan(), "the sender is not paced");
        let mut totals = FlowRow::default();
        TcpInfo::of(&client)?.fill_flow_row(&mut totals);
        assert_eq!((totals.sent, totals.delivered, totals.timeouts), (1, 1000, 0));
        Ok(())
    }

    #[test]
    fn before_linux_6_5_acknowledged_bytes_follow_from_sequence_numbers() {
        let mut info = TcpInfo::from_bytes(&[]);
        for (at, value) in [(MPTCPI_WRITE_SEQ, 199), (MPTCPI_SND_UNA, u64::MAX - 100)] {
            info.0[at..at + 8].copy_from_slice(&u64::to_ne_bytes(value));
        }
        assert_eq!(acknowledged_of(&info, MPTCPI_BYTES_ACKED, 1000), 700);
        info.0[MPTCPI_BYTES_ACKED..][..8].copy_from_slice(&u64::to_ne_bytes(720));
        assert_eq!(acknowledged_of(&info, MPTCPI_BYTES_ACKED + 8, 1000), 720);
    }

    #[test]
    fn fields_that_an_older_kernel_lacks_read_as_zero() {
        let mut bytes = [0; 104];
        bytes[TCPI_SND_CWND..TCPI_SND_CWND + 4].copy_from_slice(&7u32.to_ne_bytes());
        bytes[TCPI_SND_SSTHRESH..TCPI_SND_SSTHRESH + 4].copy_from_slice(&5u32.to_ne_bytes());
        let mut row = SeriesRow::default();
        TcpInfo::from_bytes(&bytes).fill_series_row(true, &mut row);
        assert_eq!((row.cwnd, row.ssthresh, row.sent, row.delivered), (7.0, 5.0, 0, 0));
        assert!(row.srtt.is_nan(), "an RTT of 0 means that there is no sample");
    }
}
