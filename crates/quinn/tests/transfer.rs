//! The example: a file over quinn and real UDP on localhost.

#![allow(dead_code, reason = "the example has a main function")]

#[path = "../examples/transfer.rs"]
mod transfer;

#[tokio::test]
async fn a_file_arrives_over_quinn_with_our_algorithms() {
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 241) as u8).collect();
    let sum: u64 = data.iter().map(|&byte| u64::from(byte)).sum();
    for cc in ["bbr3", "cubic(slow_start=hystart++)"] {
        let ((bytes, received), _) = transfer::transfer(cc, &data).await.expect("it arrives");
        assert_eq!((bytes, received), (3_000_000, sum), "{cc}");
    }
}

#[tokio::test]
async fn an_algorithm_that_needs_more_than_quinn_reports_is_refused() {
    for (cc, part) in [
        ("dctcp", "needs the number of packets with an ECN mark"),
        ("udt", "needs what only a UDT receiver reports"),
        ("cubik", "no algorithm is called"),
    ] {
        let error = transfer::transfer(cc, &[]).await.expect_err("not supported").to_string();
        assert!(error.contains(part), "{error}");
    }
}
