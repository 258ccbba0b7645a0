//! Transfers that go on where an earlier one broke off.

use super::*;

/// A sender of a file that is gone as soon as so many bytes are delivered.
fn cut_off<'a>(description: Description, content: &[u8], after: u64) -> Role<'a> {
    let mut sending = sending(description, content);
    Box::new(move |endpoint, now| {
        let step = sending.step(endpoint, now);
        if sending.delivered_bytes >= after { Err(Failure::failed("cut off").into()) } else { step }
    })
}

const BROKEN: u64 = 6 * PIECE_BYTES + 77;

/// A folder in which a transfer of [`BROKEN`] bytes, named `x.bin`, has broken off.
fn broken(impairments: Impairments, seed: u64) -> (Folder, Vec<u8>) {
    let (folder, content) = (Folder::new(), content(BROKEN));
    let cut = cut_off(file("x.bin", BROKEN), &content, (1 + seed % 3) * PIECE_BYTES);
    let outcomes = run(folder.path(), false, vec![cut], impairments, seed);
    assert!(error(&outcomes[RECEIVER]).contains("nothing was received"), "{outcomes:?}");
    (folder, content)
}

#[test]
//= docs/specs/endpoint.md#END-23 A later transfer goes on with it
fn a_file_goes_on_where_it_broke_off_over_paths_that_reorder_and_lose() {
    let impairments = Impairments { delay_ps: 100 * US, jitter_ps: 2 * MS, loss_ppm: 1000, ..Impairments::default() };
    let mut saved = 0;
    for seed in 0..10 {
        let (folder, content) = broken(impairments, seed);
        let (role, told) = telling(sending(file("x.bin", BROKEN), &content));
        let outcomes = run(folder.path(), false, vec![role], impairments, seed);
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}: {outcomes:?}");
        assert!(fs::read(folder.path().join("x.bin")).unwrap() == content);
        assert_eq!(files(&folder), 1);
        let (sent, there, notes) = *told.borrow();
        assert_eq!((sent + there, notes), (BROKEN, 0), "seed {seed}");
        saved += there;
    }
    // Where the first piece was late, nothing can be gone on with.
    assert!(saved >= 10 * PIECE_BYTES, "{saved}");
}

#[test]
//= docs/specs/endpoint.md#END-23 The sender compares
fn a_file_that_has_changed_is_sent_from_the_beginning() {
    for length in [BROKEN, BROKEN + PIECE_BYTES, 2 * PIECE_BYTES + 1] {
        let (folder, _) = broken(Impairments::delay(100 * US), 3);
        let other: Vec<u8> = content(length).iter().map(|byte| !byte).collect();
        let (role, told) = telling(sending(file("x.bin", length), &other));
        let outcomes = run(folder.path(), false, vec![role], Impairments::delay(100 * US), 1);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert!(fs::read(folder.path().join("x.bin")).unwrap() == other);
        assert_eq!((*told.borrow(), files(&folder)), ((length, 0, 1), 1));
    }
}

#[test]
fn a_file_that_has_grown_since_goes_on() {
    let (folder, _) = broken(Impairments::delay(100 * US), 3);
    let longer = content(BROKEN + PIECE_BYTES);
    let (role, told) = telling(sending(file("x.bin", longer.len() as u64), &longer));
    let outcomes = run(folder.path(), false, vec![role], Impairments::delay(100 * US), 1);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(fs::read(folder.path().join("x.bin")).unwrap() == longer);
    assert!(told.borrow().1 > 0);
}
