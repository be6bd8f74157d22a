;; DCTCP (RFC 8257) with g = 1/16. A flow's block has its window and its pace, then what the law
;; keeps: at 16 the slow-start threshold, at 24 alpha in steps of 2^-20, at 32 and 40 the ACKs and the
;; marked ACKs of this round trip.
(module
  (memory (export "memory") 1)

  (func (export "on_start") (param $flow i32) (param $now i64)
    (f64.store offset=16 (local.get $flow) (f64.const inf)))

  (func $half (param $flow i32) (result f64)
    (f64.max (f64.const 2)
      (f64.div (f64.floor (f64.mul (f64.load (local.get $flow)) (f64.const 32768)))
               (f64.const 65536))))

  ;; alpha moves towards the share of marks by a sixteenth.
  (func $update (param $flow i32)
    (i64.store offset=24 (local.get $flow) (i64.add
      (i64.sub (i64.load offset=24 (local.get $flow))
               (i64.shr_u (i64.load offset=24 (local.get $flow)) (i64.const 4)))
      (i64.shr_u
        (i64.div_u (i64.shl (i64.load offset=40 (local.get $flow)) (i64.const 20))
                   (i64.load offset=32 (local.get $flow)))
        (i64.const 4))))
    (i64.store offset=32 (local.get $flow) (i64.const 0))
    (i64.store offset=40 (local.get $flow) (i64.const 0)))

  (func (export "on_ack") (param $flow i32) (param $now i64) (param $packets i32)
      (param $round_trip i64) (param $marked i32) (param $under_way i32) (param $bytes i32)
      (param $grows i32) (param $round i32)
    (local $window f64)
    (i64.store offset=32 (local.get $flow)
      (i64.add (i64.load offset=32 (local.get $flow)) (i64.const 1)))
    (i64.store offset=40 (local.get $flow)
      (i64.add (i64.load offset=40 (local.get $flow)) (i64.extend_i32_u (local.get $marked))))
    (if (local.get $round) (then (call $update (local.get $flow))))
    (local.set $window (f64.load (local.get $flow)))
    (if (i32.and (local.get $grows) (i32.eqz (local.get $marked))) (then
      (f64.store (local.get $flow) (f64.add (local.get $window)
        (if (result f64) (f64.lt (local.get $window) (f64.load offset=16 (local.get $flow)))
          (then (f64.const 1))
          (else (f64.div (f64.const 1) (local.get $window)))))))))

  ;; The window loses alpha / 2 of itself, but keeps a packet.
  (func (export "on_mark") (param $flow i32) (param $now i64)
    (local $steps i64)
    (local.set $steps
      (i64.trunc_f64_u (f64.mul (f64.load (local.get $flow)) (f64.const 65536))))
    (f64.store (local.get $flow)
      (f64.max (f64.min (f64.const 1) (f64.load (local.get $flow)))
        (f64.div
          (f64.convert_i64_u (i64.sub (local.get $steps)
            (i64.shr_u (i64.mul (local.get $steps) (i64.load offset=24 (local.get $flow)))
                       (i64.const 21))))
          (f64.const 65536))))
    (f64.store offset=16 (local.get $flow)
      (f64.max (f64.const 2) (f64.load (local.get $flow)))))

  (func (export "on_loss") (param $flow i32) (param $now i64)
    (f64.store offset=16 (local.get $flow) (call $half (local.get $flow)))
    (f64.store (local.get $flow) (f64.load offset=16 (local.get $flow))))

  (func (export "on_timeout") (param $flow i32) (param $now i64)
    (f64.store offset=16 (local.get $flow) (call $half (local.get $flow)))
    (f64.store (local.get $flow) (f64.const 1))))
