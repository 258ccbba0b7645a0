//! Connection halves and streams.

use std::io;
use std::pin::pin;
use std::task::Poll;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Opens a connection; returns both endpoints and both ends.
async fn both(network: &RunningNetwork) -> (Endpoint, Endpoint, Connection, Connection) {
    let (client, server) = (network.spawn(0, false), network.spawn(1, true));
    let (ours, theirs) = tokio::join!(client.connect(peer(1, false)), server.accept());
    (client, server, ours.unwrap(), theirs.unwrap())
}

/// Receives until the connection is closed; returns the sorted message numbers.
async fn numbers(mut half: RecvHalf) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(message) = half.recv().await.unwrap() {
        numbers.push(message.number);
    }
    numbers.sort_unstable();
    numbers
}

fn rough() -> Impairments {
    Impairments {
        delay_ps: 20 * US,
        jitter_ps: 200 * US,
        loss_ppm: 50_000,
        duplicate_ppm: 50_000,
        ..Impairments::default()
    }
}

#[test]
fn both_halves_work_concurrently_in_separate_tasks() {
    let network = RunningNetwork::new(rough());
    block_on(async {
        let (_client, _server, ours, theirs) = both(&network).await;
        let ((our_send, our_recv), (their_send, their_recv)) = (ours.split(), theirs.split());
        let send = |half: SendHalf| async move {
            for seed in 0..200 {
                half.send(content(seed, 3000)).await.unwrap();
            }
        };
        let receivers = [tokio::spawn(numbers(our_recv)), tokio::spawn(numbers(their_recv))];
        let sent = [tokio::spawn(send(our_send.clone())), tokio::spawn(send(their_send))];
        for sent in sent {
            sent.await.unwrap();
        }
        our_send.close().await.unwrap();
        for received in receivers {
            assert!(received.await.unwrap().into_iter().eq(0..200));
        }
    });
}

#[test]
fn the_connection_stays_open_while_one_half_exists() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let (_client, _server, ours, mut theirs) = both(&network).await;
        let (sending, receiving) = ours.split();
        drop(sending);
        theirs.send("still there".into()).await.unwrap();
        drop(receiving);
        assert!(theirs.recv().await.unwrap().is_none());
    });
}

#[test]
//= docs/specs/endpoint.md#END-39 in the order of their numbers
fn a_stream_keeps_the_order_of_bytes_despite_reordering() {
    let network = RunningNetwork::new(rough());
    block_on(async {
        let (_client, _server, ours, mut theirs) = both(&network).await;
        // Messages may precede the streams.
        ours.send("first".into()).await.unwrap();
        assert_eq!(theirs.recv().await.unwrap().unwrap().data, "first");
        let (ours, theirs) = (ours.into_stream(), theirs.into_stream());
        let (up, down) = (content(1, 3_000_001), content(2, 700_000));
        let transfer = |stream: Stream, send: Bytes, expected: Bytes| async move {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let write = async {
                for part in send.chunks(17_000) {
                    writer.write_all(part).await.unwrap();
                }
                writer.shutdown().await.unwrap();
                assert_eq!(writer.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            };
            let read = async {
                let mut got = Vec::new();
                reader.read_to_end(&mut got).await.unwrap();
                assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
            };
            tokio::join!(write, read);
        };
        let theirs = transfer(theirs, down.clone(), up.clone());
        tokio::join!(transfer(ours, up, down), theirs);
    });
}

#[test]
fn a_writer_waits_for_its_reader() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let (_client, server, ours, theirs) = both(&network).await;
        let (mut ours, theirs) = (ours.into_stream(), theirs.into_stream());
        let chunk = vec![1; 64 << 10];
        let mut written = 0;
        // The receiver's grant and the writer's own window: 2 MiB and 8 MiB here.
        let all = async {
            loop {
                written += ours.write(&chunk).await.unwrap();
            }
        };
        assert!(tokio::time::timeout(Duration::from_millis(500), all).await.is_err());
        let most = usize::try_from(flow(false).max_data_bytes).unwrap() + (9 << 20);
        assert!((1 << 20..most).contains(&written), "{written} bytes written without a reader");
        drop((theirs, server));
    });
}

#[test]
//= docs/specs/endpoint.md#END-39 that is no error, as long as all bytes are
fn a_reader_with_all_bytes_may_close_before_the_end() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let (_client, _server, ours, theirs) = both(&network).await;
        let (mut ours, mut theirs) = (ours.into_stream(), theirs.into_stream());
        ours.write_all(b"all").await.unwrap();
        theirs.read_exact(&mut [0; 3]).await.unwrap();
        drop(theirs);
        // Reads the close.
        assert_eq!(ours.read(&mut [0; 3]).await.unwrap(), 0);
        ours.shutdown().await.unwrap();
    });
}

#[test]
fn writing_to_a_closed_peer_is_an_error() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let (_client, _server, ours, theirs) = both(&network).await;
        let mut ours = ours.into_stream();
        drop(theirs);
        assert_eq!(ours.read(&mut [0; 3]).await.unwrap(), 0);
        ours.write_all(b"more").await.unwrap();
        assert_eq!(ours.shutdown().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_stream_fails_when_its_peer_disappears() {
    let network = RunningNetwork::giving_up(Impairments::delay(US), Duration::from_millis(500));
    block_on(async {
        let (_client, _server, ours, theirs) = both(&network).await;
        let (mut ours, _theirs) = (ours.into_stream(), theirs.into_stream());
        network.network.set_impairments(Impairments { loss_ppm: 1_000_000, ..Impairments::default() });
        ours.write_all(b"unheard").await.unwrap();
        assert_eq!(ours.shutdown().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let _ = ours.shutdown().await;
        assert!(ours.read_u8().await.is_err() && ours.write(b"more").await.is_err());
    });
}

#[test]
fn an_empty_write_is_not_the_end() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let (_client, _server, ours, theirs) = both(&network).await;
        let (mut ours, mut theirs) = (ours.into_stream(), theirs.into_stream());
        assert_eq!(ours.write(b"").await.unwrap(), 0);
        ours.write_all(b"x").await.unwrap();
        assert_eq!(theirs.read_u8().await.unwrap(), b'x');
        // Nothing is received, and the stream has not ended.
        let mut byte = [0];
        let mut read = pin!(theirs.read(&mut byte));
        let pending = std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await;
        assert!(pending);
        drop(ours);
        assert_eq!(read.await.unwrap(), 0);
    });
}

#[test]
fn an_address_without_route_is_an_error_with_a_remedy() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let client = network.spawn(0, false);
        let error = client.connect(address(1, false)).await.unwrap_err();
        assert!(error.to_string().contains("connect to a Peer"), "{error}");
    });
}
