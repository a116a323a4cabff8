#!/usr/bin/env bash
dl_if=ifb-wan # download interface
ul_if=wan     # upload interface
adjust_dl_shaper_rate=1
min_dl_shaper_rate_kbps=5000
base_dl_shaper_rate_kbps=20000
max_dl_shaper_rate_kbps=80000
min_ul_shaper_rate_kbps=5000
base_ul_shaper_rate_kbps=18000
max_ul_shaper_rate_kbps=35000
connection_active_thr_kbps=2000
