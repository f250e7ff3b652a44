use slabplan_ir::ElementType;

use super::*;
use crate::target;

const ADD: &str = "HloModule add
ENTRY e {
  x = f32[100] parameter(0)
  y = f32[100] parameter(1)
  ROOT s = f32[100] add(x, y)
}";

/// The first argument is given away for the result.
const TAKE: &str = "HloModule take, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY e {
  x = f32[100] parameter(0)
  y = f32[100] parameter(1)
  ROOT s = f32[100] multiply(x, y)
}";

const LARGE: &str = "HloModule large
ENTRY e {
  x = f32[1000] parameter(0)
  ROOT n = f32[1000] negate(x)
}";

fn client(options: ClientOptions) -> Client {
    Client::new(target::load("cpu").unwrap(), options).unwrap()
}

fn parse(text: &str) -> Module {
    slabplan_ir::text::parse(text).into_result().unwrap()
}

fn ones(n: usize) -> HostArray {
    HostArray::from_f32(&vec![1.0; n], &[n as u64]).unwrap()
}

/// A client whose devices have `bytes` bytes.
fn small(bytes: u64, options: ClientOptions) -> Client {
    let mut target = target::load("cpu").unwrap();
    target.spaces[0].capacity = slabplan_ir::Bytes::new(bytes).unwrap();
    Client::new(target, options).unwrap()
}

#[test]
fn a_donated_buffer_is_gone_and_says_who_took_it() {
    let client = client(ClientOptions::default());
    let take = client
        .compile(parse(TAKE), &CompileConfig::default())
        .unwrap();
    assert_eq!(take.donated(), [true, false]);
    let x = client
        .buffer_from_host("weights", ones(100), "cpu:0")
        .unwrap();
    let y = client.buffer_from_host("y", ones(100), "cpu:0").unwrap();
    let before = client.devices()[0].memory_stats().in_use;
    let out = take.execute(&[&x, &y]).unwrap();
    assert_eq!(out[0].to_host().unwrap().to_f32().unwrap(), vec![1.0; 100]);
    // The result came, the argument went.
    assert_eq!(client.devices()[0].memory_stats().in_use, before);
    assert!(!x.is_alive() && y.is_alive());
    let error = take.execute(&[&x, &y]).unwrap_err().to_string();
    assert_eq!(
        error,
        "buffer `weights` was donated to take as argument 0 and is gone"
    );
    assert_eq!(x.to_host().unwrap_err().to_string(), error);
}

#[test]
fn one_buffer_can_not_be_donated_and_read_in_one_call() {
    let client = client(ClientOptions::default());
    let take = client
        .compile(parse(TAKE), &CompileConfig::default())
        .unwrap();
    let x = client.buffer_from_host("x", ones(100), "cpu:0").unwrap();
    let error = take.execute(&[&x, &x.clone()]).unwrap_err().to_string();
    assert_eq!(
        error,
        "buffer `x` is given as arguments 0 and 1 of take, which takes argument 0 away"
    );
    assert!(x.is_alive(), "nothing ran");
    // Where nothing is donated it is no mistake.
    let add = client
        .compile(parse(ADD), &CompileConfig::default())
        .unwrap();
    let out = add.execute(&[&x, &x]).unwrap();
    assert_eq!(out[0].to_host().unwrap().to_f32().unwrap(), vec![2.0; 100]);
}

#[test]
fn a_full_device_says_what_fills_it() {
    // 400 bytes take 448, aligned to 64.
    let client = small(1000, ClientOptions::default());
    let first = client
        .buffer_from_host("first", ones(100), "cpu:0")
        .unwrap();
    let _second = client
        .buffer_from_host("second", ones(100), "cpu:0")
        .unwrap();
    assert_eq!(first.device_bytes(), 448);
    let error = client
        .buffer_from_host("third", ones(100), "cpu:0")
        .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("device cpu:0 is out of memory: buffer third f32[100] needs 448B, 104B of 1000B are free"), "{text}");
    assert!(text.contains("448B  buffer first f32[100]"), "{text}");
    drop(first);
    assert!(client.buffer_from_host("third", ones(100), "cpu:0").is_ok());
}

#[test]
fn a_module_larger_than_the_device_names_its_largest_values() {
    let client = small(4096 + 100, ClientOptions::default());
    let error = client
        .compile(parse(LARGE), &CompileConfig::default())
        .unwrap_err();
    let text = error.to_string();
    // 4000 bytes for each of two, and a register of 1008 elements as scratch: at most three times 4032.
    assert!(
        text.starts_with("module large does not fit: its slab of ram needs 11.")
            && text.contains("KiB, which has 4.10KiB"),
        "{text}"
    );
    assert!(
        text.contains("%x f32[1000]") || text.contains("%x f32[1000]{0}"),
        "{text}"
    );
}

#[test]
fn the_fraction_and_preallocation_bound_the_memory() {
    let options = ClientOptions {
        memory_fraction: 0.75,
        preallocate: true,
        ..ClientOptions::default()
    };
    let client = small(4000, options);
    let stats = client.devices()[0].memory_stats();
    assert_eq!(
        (stats.capacity, stats.reserved, stats.in_use),
        (3000, 3000, 0)
    );
    for memory_fraction in [0.0, -1.0, 1.5, f64::NAN] {
        let options = ClientOptions {
            memory_fraction,
            ..ClientOptions::default()
        };
        assert!(Client::new(target::load("cpu").unwrap(), options).is_err());
    }
}

#[test]
fn programs_share_one_slab_or_have_their_own() {
    let slab = |text| {
        let config = CompileConfig {
            scratch: Some(machine_threads()),
            ..CompileConfig::default()
        };
        let target = target::load("cpu").unwrap();
        let compiled = compile(parse(text), &target, &config).unwrap();
        compiled.plan().space(0).unwrap().slab.get()
    };
    let (add_bytes, large_bytes) = (slab(ADD), slab(LARGE));
    // Three arrays of 400 bytes and two of 4000, each but the last rounded up to 64, and scratch: two
    // registers of 112 elements, and one of 1008.
    assert!((2 * 448 + 400 + 2 * 448..=5 * 448).contains(&add_bytes));
    assert!((2 * 4032 + 4000..=3 * 4032).contains(&large_bytes));
    for (slabs, expected) in [
        (Slabs::Each, add_bytes + large_bytes),
        (Slabs::Shared, large_bytes),
    ] {
        let client = client(ClientOptions {
            slabs,
            ..ClientOptions::default()
        });
        let config = CompileConfig::default();
        let add = client.compile(parse(ADD), &config).unwrap();
        let large = client.compile(parse(LARGE), &config).unwrap();
        assert_eq!(
            client.devices()[0].memory_stats().in_use,
            expected,
            "{slabs:?}"
        );
        let x = client.buffer_from_host("x", ones(100), "cpu:0").unwrap();
        let y = client.buffer_from_host("y", ones(1000), "cpu:0").unwrap();
        for _ in 0..2 {
            let sum = add.execute(&[&x, &x]).unwrap();
            let negated = large.execute(&[&y]).unwrap();
            assert_eq!(sum[0].to_host().unwrap().to_f32().unwrap(), vec![2.0; 100]);
            assert_eq!(
                negated[0].to_host().unwrap().to_f32().unwrap(),
                vec![-1.0; 1000]
            );
        }
    }
}

#[test]
fn arguments_are_written_and_results_read_in_the_slab_itself() {
    let client = client(ClientOptions::default());
    let add = client
        .compile(parse(ADD), &CompileConfig::default())
        .unwrap();
    let sum = add
        .in_place(|p| {
            for n in 0..2 {
                let bytes = p.argument(0, n).unwrap();
                assert_eq!(bytes.len(), 400);
                for element in bytes.chunks_exact_mut(4) {
                    element.copy_from_slice(&(n as f32 + 1.0).to_le_bytes());
                }
            }
            p.run().unwrap();
            p.result(0, 0).unwrap().to_vec()
        })
        .unwrap();
    let sum = HostArray::new(ElementType::F32, &[100], sum).unwrap();
    assert_eq!(sum.to_f32().unwrap(), vec![3.0; 100]);
    // A tiled array of the TPU does not lie densely: (8,128) tiles of a 3 x 5 array.
    let client = Client::new(target::load("tpu-v5e").unwrap(), ClientOptions::default()).unwrap();
    let text =
        "HloModule m\nENTRY e {\n  x = f32[3,5] parameter(0)\n  ROOT n = f32[3,5] negate(x)\n}";
    let program = client
        .compile(parse(text), &CompileConfig::default())
        .unwrap();
    assert!(program.in_place(|p| p.argument(0, 0).is_none()).unwrap());
}

#[test]
fn devices_are_chosen_by_name() {
    let client = client(ClientOptions {
        devices: 3,
        ..ClientOptions::default()
    });
    let config = CompileConfig::default();
    let add = client.compile_on(parse(ADD), &config, &["cpu:2"]).unwrap();
    let there = client
        .buffer_from_host("there", ones(100), "cpu:2")
        .unwrap();
    let elsewhere = client
        .buffer_from_host("elsewhere", ones(100), "cpu:0")
        .unwrap();
    assert!(add.execute(&[&there, &there]).is_ok());
    let error = add.execute(&[&there, &elsewhere]).unwrap_err().to_string();
    assert_eq!(
        error,
        "buffer `elsewhere` lies on cpu:0, the program runs on cpu:2"
    );
    let error = client.device("tpu:0").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no device tpu:0; there are cpu:0, cpu:1, cpu:2"
    );
    let many = parse("HloModule many, num_partitions=4\nENTRY e { ROOT x = f32[] parameter(0) }");
    let error = client.compile(many, &config).unwrap_err().to_string();
    assert_eq!(error, "module many runs on 4 devices, 3 are given");
}

#[test]
fn devices_work_together() {
    let client = client(ClientOptions {
        devices: 2,
        ..ClientOptions::default()
    });
    let text = "HloModule sum, num_partitions=2
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e {
  a = f32[100] parameter(0)
  ROOT s = f32[100] all-reduce(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}";
    let sum = client
        .compile(parse(text), &CompileConfig::default())
        .unwrap();
    let on = |device: &str| client.buffer_from_host("a", ones(100), device).unwrap();
    let (a, b) = (on("cpu:0"), on("cpu:1"));
    let out = sum.execute_sharded(&[&[&a], &[&b]]).unwrap();
    for results in out {
        assert_eq!(
            results[0].to_host().unwrap().to_f32().unwrap(),
            vec![2.0; 100]
        );
    }
}
