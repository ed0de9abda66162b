"""Options as types of keyword arguments. Made by make_options.py of the program's help."""
from __future__ import annotations

from typing import Optional, TypedDict, Union

from ._options import Option, Path


class DrawOptions(TypedDict, total=False):
    """Those of `tessera draw`; log shows lines on stderr."""
    log: str
    bandwidth: Option
    beam_shape: Option
    beam_size: Option
    center: Option
    field: Optional[Union[float, int, str]]
    freq: Option
    like: Option
    obs: Option
    overwrite: Optional[bool]
    reproducible: Optional[bool]
    scale: Option
    size: Option
    stall_timeout: Option
    stokes: Option
    terms: Optional[Union[int, str]]
    threads: Optional[Union[int, str]]


class ImageOptions(TypedDict, total=False):
    """Those of `tessera image`; log shows lines on stderr."""
    log: str
    accuracy: Optional[Union[float, str]]
    antenna: Option
    any_solution_direction: Optional[bool]
    auto_mask: Optional[Union[float, str]]
    auto_mask_nmiter: Optional[Union[int, str]]
    auto_multithresh: Optional[bool]
    auto_threshold: Optional[Union[float, str]]
    backend: Option
    beam_fitting_size: Optional[Union[float, int, str]]
    beam_shape: Option
    beam_size: Option
    casa_mask: Optional[Path]
    center: Option
    channel_division_frequencies: Option
    channel_mask: Option
    channels: Option
    channels_out: Optional[Union[int, str]]
    checkpoint: Optional[Path]
    checkpoint_every: Option
    circular_beam: Optional[bool]
    clean_border: Optional[Union[float, str]]
    common_beam: Optional[bool]
    continue_: Optional[bool]
    cube: Optional[bool]
    cut_cells: Optional[bool]
    cut_threshold: Optional[Union[float, int, str]]
    cyclefactor: Optional[Union[float, int, str]]
    cycleniter: Optional[Union[int, str]]
    datacolumn: Optional[Path]
    deconvolution_channels: Optional[Union[float, str]]
    density: Option
    density_box: Optional[Union[int, str]]
    density_frame: Option
    dirty_as_image: Optional[bool]
    dump_stages: Optional[Path]
    even_timesteps: Optional[bool]
    facet_aterms: Optional[Path]
    facet_beam: Option
    facet_beam_update: Option
    facet_feather: Option
    facet_separation: Option
    facet_solutions: Option
    facet_sources: Option
    facets: Option
    fast_noise: Option
    field: Optional[Union[float, int, str]]
    fit_spectral_log_pol: Optional[Union[int, str]]
    fit_spectral_pol: Optional[Union[int, str]]
    fits_mask: Optional[Path]
    force_mask_rounds: Optional[Union[int, str]]
    frame: Option
    gain: Optional[Union[float, str]]
    gap_channel_division: Optional[bool]
    gcf: Option
    grow_iterations: Optional[Union[int, str]]
    grow_prune: Option
    hand_weight: Option
    horizon_mask: Option
    interpolation: Option
    intervals: Option
    intervals_out: Optional[Union[int, str]]
    join_channels: Optional[bool]
    join_polarizations: Optional[bool]
    line_channels: Option
    link_polarizations: Option
    lobe_beam: Optional[bool]
    local_rms: Optional[bool]
    local_rms_method: Option
    local_rms_strength: Optional[Union[float, int, str]]
    local_rms_window: Optional[Union[int, str]]
    lock_timeout: Option
    low_noise_threshold: Optional[Union[float, str]]
    mask: Optional[Path]
    max_psf_fraction: Optional[Union[float, str]]
    max_time: Option
    maxuvw_m: Option
    memory: Option
    mf_weighting: Optional[bool]
    mgain: Optional[Union[float, str]]
    min_beam_frac: Optional[Union[float, int, str]]
    min_percent_change: Optional[Union[float, str]]
    min_psf_fraction: Optional[Union[float, str]]
    minor_cycle: Optional[Path]
    minuvw_m: Option
    model_column: Optional[Path]
    mosaic: Optional[bool]
    multiscale: Optional[bool]
    multiscale_choice: Option
    multiscale_gain: Optional[Union[float, str]]
    multiscale_max_scales: Optional[Union[int, str]]
    multiscale_scale_bias: Optional[Union[float, str]]
    multiscale_scales: Option
    multiscale_shape: Option
    nchan: Optional[Union[int, str]]
    negative_threshold: Optional[Union[float, str]]
    niter: Optional[Union[int, str]]
    nmiter: Optional[Union[int, str]]
    no_calibration: Optional[bool]
    no_dirty: Optional[bool]
    no_kernel_cache: Optional[bool]
    no_mf_weighting: Optional[bool]
    no_negative: Optional[bool]
    no_psf: Optional[bool]
    no_sync: Optional[bool]
    noise_threshold: Optional[Union[float, str]]
    odd_timesteps: Optional[bool]
    output: Optional[Path]
    oversampling: Option
    overwrite: Optional[bool]
    padding: Optional[Union[float, int, str]]
    pb_limit: Option
    pb_mask: Option
    pbcor: Optional[bool]
    pointing_limit: Option
    predict_models: Optional[bool]
    preview: Optional[bool]
    primary_beam: Option
    profile: Optional[Path]
    psf_per_facet: Optional[bool]
    reference_freq: Option
    reproducible: Optional[bool]
    restfreq: Option
    resume: Optional[bool]
    save_first_residual: Optional[bool]
    save_source_list: Optional[bool]
    scalar_visibilities: Optional[bool]
    scan: Option
    scratch: Optional[Path]
    select_antenna: Option
    select_facets: Option
    select_field: Option
    select_intent: Option
    select_scan: Option
    select_spw: Option
    select_taql: Option
    select_time: Option
    select_uvrange: Option
    shift: Option
    sidelobe_threshold: Optional[Union[float, str]]
    smooth_factor: Optional[Union[float, int, str]]
    soltabs: Option
    solution_interpolation: Option
    solutions_per_observation: Optional[bool]
    spw: Option
    squared_channel_joining: Optional[bool]
    stall_timeout: Option
    start: Option
    stokes: Option
    stop_negative: Optional[bool]
    store_imaging_weights: Optional[bool]
    strategy: Option
    subtract_column: Optional[Path]
    subtract_spectral_pol: Optional[Union[int, str]]
    super_weight: Optional[Union[float, int, str]]
    taper_at: Option
    taper_edge: Option
    taper_edge_tukey: Option
    taper_gaussian: Option
    taper_inner_tukey: Option
    taper_tukey: Option
    theoretic_beam: Optional[bool]
    threads: Optional[Union[int, str]]
    threshold: Option
    timerange: Option
    trace: Optional[Path]
    update_model: Optional[bool]
    uvcontsub: Optional[Union[int, str]]
    uvrange: Option
    velocity: Option
    w: Option
    w_spacing: Option
    weight: Option
    weighting_rank_filter: Optional[Union[float, str]]
    weighting_rank_filter_size: Optional[Union[int, str]]
    width: Option
    write_gcf: Option
    wsclean_files: Optional[bool]


class PlanOptions(TypedDict, total=False):
    """Those of `tessera plan`; log shows lines on stderr."""
    log: str
    accuracy: Optional[Union[float, str]]
    antenna: Option
    any_solution_direction: Optional[bool]
    auto_mask: Optional[Union[float, str]]
    auto_mask_nmiter: Optional[Union[int, str]]
    auto_multithresh: Optional[bool]
    auto_threshold: Optional[Union[float, str]]
    backend: Option
    beam_fitting_size: Optional[Union[float, int, str]]
    beam_shape: Option
    beam_size: Option
    casa_mask: Optional[Path]
    center: Option
    channel_division_frequencies: Option
    channel_mask: Option
    channels: Option
    channels_out: Optional[Union[int, str]]
    checkpoint: Optional[Path]
    checkpoint_every: Option
    circular_beam: Optional[bool]
    clean_border: Optional[Union[float, str]]
    common_beam: Optional[bool]
    continue_: Optional[bool]
    cube: Optional[bool]
    cut_cells: Optional[bool]
    cut_threshold: Optional[Union[float, int, str]]
    cyclefactor: Optional[Union[float, int, str]]
    cycleniter: Optional[Union[int, str]]
    datacolumn: Optional[Path]
    deconvolution_channels: Optional[Union[float, str]]
    density: Option
    density_box: Optional[Union[int, str]]
    density_frame: Option
    dirty_as_image: Optional[bool]
    dump_stages: Optional[Path]
    even_timesteps: Optional[bool]
    facet_aterms: Optional[Path]
    facet_beam: Option
    facet_beam_update: Option
    facet_feather: Option
    facet_separation: Option
    facet_solutions: Option
    facet_sources: Option
    facets: Option
    fast_noise: Option
    field: Optional[Union[float, int, str]]
    fit_spectral_log_pol: Optional[Union[int, str]]
    fit_spectral_pol: Optional[Union[int, str]]
    fits_mask: Optional[Path]
    force_mask_rounds: Optional[Union[int, str]]
    frame: Option
    gain: Optional[Union[float, str]]
    gap_channel_division: Optional[bool]
    gcf: Option
    grow_iterations: Optional[Union[int, str]]
    grow_prune: Option
    hand_weight: Option
    horizon_mask: Option
    interpolation: Option
    intervals: Option
    intervals_out: Optional[Union[int, str]]
    join_channels: Optional[bool]
    join_polarizations: Optional[bool]
    line_channels: Option
    link_polarizations: Option
    lobe_beam: Optional[bool]
    local_rms: Optional[bool]
    local_rms_method: Option
    local_rms_strength: Optional[Union[float, int, str]]
    local_rms_window: Optional[Union[int, str]]
    lock_timeout: Option
    low_noise_threshold: Optional[Union[float, str]]
    mask: Optional[Path]
    max_psf_fraction: Optional[Union[float, str]]
    max_time: Option
    maxuvw_m: Option
    memory: Option
    mf_weighting: Optional[bool]
    mgain: Optional[Union[float, str]]
    min_beam_frac: Optional[Union[float, int, str]]
    min_percent_change: Optional[Union[float, str]]
    min_psf_fraction: Optional[Union[float, str]]
    minor_cycle: Optional[Path]
    minuvw_m: Option
    model_column: Optional[Path]
    mosaic: Optional[bool]
    multiscale: Optional[bool]
    multiscale_choice: Option
    multiscale_gain: Optional[Union[float, str]]
    multiscale_max_scales: Optional[Union[int, str]]
    multiscale_scale_bias: Optional[Union[float, str]]
    multiscale_scales: Option
    multiscale_shape: Option
    nchan: Optional[Union[int, str]]
    negative_threshold: Optional[Union[float, str]]
    niter: Optional[Union[int, str]]
    nmiter: Optional[Union[int, str]]
    no_calibration: Optional[bool]
    no_dirty: Optional[bool]
    no_kernel_cache: Optional[bool]
    no_mf_weighting: Optional[bool]
    no_negative: Optional[bool]
    no_psf: Optional[bool]
    no_sync: Optional[bool]
    noise_threshold: Optional[Union[float, str]]
    odd_timesteps: Optional[bool]
    output: Optional[Path]
    oversampling: Option
    overwrite: Optional[bool]
    padding: Optional[Union[float, int, str]]
    pb_limit: Option
    pb_mask: Option
    pbcor: Optional[bool]
    pointing_limit: Option
    predict_models: Optional[bool]
    preview: Optional[bool]
    primary_beam: Option
    profile: Optional[Path]
    psf_per_facet: Optional[bool]
    reference_freq: Option
    reproducible: Optional[bool]
    restfreq: Option
    resume: Optional[bool]
    save_first_residual: Optional[bool]
    save_source_list: Optional[bool]
    scalar_visibilities: Optional[bool]
    scan: Option
    scratch: Optional[Path]
    select_antenna: Option
    select_facets: Option
    select_field: Option
    select_intent: Option
    select_scan: Option
    select_spw: Option
    select_taql: Option
    select_time: Option
    select_uvrange: Option
    shift: Option
    sidelobe_threshold: Optional[Union[float, str]]
    smooth_factor: Optional[Union[float, int, str]]
    soltabs: Option
    solution_interpolation: Option
    solutions_per_observation: Optional[bool]
    spw: Option
    squared_channel_joining: Optional[bool]
    stall_timeout: Option
    start: Option
    stokes: Option
    stop_negative: Optional[bool]
    store_imaging_weights: Optional[bool]
    strategy: Option
    subtract: Optional[Path]
    subtract_column: Optional[Path]
    subtract_spectral_pol: Optional[Union[int, str]]
    super_weight: Optional[Union[float, int, str]]
    taper_at: Option
    taper_edge: Option
    taper_edge_tukey: Option
    taper_gaussian: Option
    taper_inner_tukey: Option
    taper_tukey: Option
    theoretic_beam: Optional[bool]
    threads: Optional[Union[int, str]]
    threshold: Option
    timerange: Option
    trace: Optional[Path]
    update_model: Optional[bool]
    uvcontsub: Optional[Union[int, str]]
    uvrange: Option
    velocity: Option
    w: Option
    w_spacing: Option
    weight: Option
    weighting_rank_filter: Optional[Union[float, str]]
    weighting_rank_filter_size: Optional[Union[int, str]]
    width: Option
    write_gcf: Option
    wsclean_files: Optional[bool]


class PredictOptions(TypedDict, total=False):
    """Those of `tessera predict`; log shows lines on stderr."""
    log: str
    accuracy: Optional[Union[float, str]]
    antenna: Option
    any_solution_direction: Optional[bool]
    backend: Option
    center: Option
    channels: Option
    column_per_facet: Optional[bool]
    datacolumn: Optional[Path]
    even_timesteps: Optional[bool]
    facet_aterms: Optional[Path]
    facet_beam: Option
    facet_beam_update: Option
    facet_solutions: Option
    facets: Option
    field: Optional[Union[float, int, str]]
    fit_spectral_pol: Optional[Union[int, str]]
    gcf: Option
    intervals: Option
    lock_timeout: Option
    maxuvw_m: Option
    memory: Option
    minuvw_m: Option
    mosaic: Optional[bool]
    no_calibration: Optional[bool]
    no_kernel_cache: Optional[bool]
    no_sync: Optional[bool]
    odd_timesteps: Optional[bool]
    oversampling: Option
    overwrite: Optional[bool]
    pointing_limit: Option
    primary_beam: Option
    profile: Optional[Path]
    scalar_visibilities: Optional[bool]
    scan: Option
    select_antenna: Option
    select_facets: Option
    select_field: Option
    select_intent: Option
    select_scan: Option
    select_spw: Option
    select_taql: Option
    select_time: Option
    select_uvrange: Option
    soltabs: Option
    solution_interpolation: Option
    spw: Option
    stall_timeout: Option
    strategy: Option
    subtract_column: Optional[Path]
    threads: Optional[Union[int, str]]
    timerange: Option
    trace: Optional[Path]
    uvrange: Option
    w: Option
    w_spacing: Option
    write_gcf: Option


class RestoreOptions(TypedDict, total=False):
    """Those of `tessera restore`; log shows lines on stderr."""
    log: str
    beam_shape: Option
    beam_size: Option
    common_beam: Optional[bool]
    overwrite: Optional[bool]
    reproducible: Optional[bool]
    stall_timeout: Option
    threads: Optional[Union[int, str]]


class SimulateOptions(TypedDict, total=False):
    """Those of `tessera simulate`; log shows lines on stderr."""
    log: str
    antennas: Optional[Union[int, str]]
    chan_width: Option
    channels: Optional[Union[int, str]]
    dut1: Option
    hour_angle: Option
    integration: Option
    lock_timeout: Option
    max_radius: Option
    min_elevation: Option
    no_sync: Optional[bool]
    noise: Option
    object: Optional[Path]
    overwrite: Optional[bool]
    pointings: Option
    pol: Option
    primary_beam: Option
    scan: Option
    seed: Optional[Union[int, str]]
    sefd: Option
    stall_timeout: Option
    start: Option
    threads: Optional[Union[int, str]]
