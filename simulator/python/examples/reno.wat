;; Reno (RFC 5681). A flow's block has its window and its pace, then what the law keeps: at 16 the
;; slow-start threshold.
(module
  (memory (export "memory") 1)

  (func (export "on_start") (param $flow i32) (param $now i64)
    (f64.store offset=16 (local.get $flow) (f64.const inf)))

  ;; Half the window, in steps of 1/65536 of a packet, and at least two packets.
  (func $half (param $flow i32) (result f64)
    (f64.max (f64.const 2)
      (f64.div (f64.floor (f64.mul (f64.load (local.get $flow)) (f64.const 32768)))
               (f64.const 65536))))

  (func (export "on_ack") (param $flow i32) (param $now i64) (param $packets i32)
      (param $round_trip i64) (param $marked i32) (param $under_way i32) (param $bytes i32)
      (param $grows i32) (param $round i32)
    (local $window f64)
    (local.set $window (f64.load (local.get $flow)))
    (if (local.get $grows) (then
      (f64.store (local.get $flow) (f64.add (local.get $window)
        (if (result f64) (f64.lt (local.get $window) (f64.load offset=16 (local.get $flow)))
          (then (f64.const 1))
          (else (f64.div (f64.const 1) (local.get $window)))))))))

  (func (export "on_loss") (param $flow i32) (param $now i64)
    (f64.store offset=16 (local.get $flow) (call $half (local.get $flow)))
    (f64.store (local.get $flow) (f64.load offset=16 (local.get $flow))))

  (func (export "on_timeout") (param $flow i32) (param $now i64)
    (f64.store offset=16 (local.get $flow) (call $half (local.get $flow)))
    (f64.store (local.get $flow) (f64.const 1))))
