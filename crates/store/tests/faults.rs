//! The faults that other tests rely on.

use std::fs;
use std::io::Write as _;

use sojourn_store::testing::{Fault, Faulty};
use sojourn_store::{Access, Disk, Files};

#[test]
fn a_single_fault_fails_one_operation() {
    let folder = tempfile::tempdir().unwrap();
    let files = Faulty::new(Fault::Once, 1);
    let mut output = files
        .create_new(&folder.path().join("a"), Access::Usual)
        .unwrap();
    assert!(output.write_all(b"1234").is_err());
    assert!(files.failed());
    output.write_all(b"5678").unwrap();
    output.sync().unwrap();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"5678");
    assert_eq!(files.operations(), 4);
}

#[test]
fn a_death_leaves_half_of_a_write_and_nothing_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let files = Faulty::new(Fault::Death, 1);
    let mut output = files.create_new(&a, Access::Usual).unwrap();
    assert!(output.write_all(b"1234").is_err());
    assert!(output.sync().is_err());
    assert!(files.rename(&a, &b).is_err());
    assert!(files.remove_file(&a).is_err());
    assert_eq!(fs::read(a).unwrap(), b"12");
}

#[test]
fn a_lock_has_one_holder_until_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let held = Disk.try_lock(&path).unwrap();
    assert!(held.is_some());
    assert!(Disk.try_lock(&path).unwrap().is_none());
    drop(held);
    assert!(Disk.try_lock(&path).unwrap().is_some());
}
