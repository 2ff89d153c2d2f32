"""MJCF models written for these tests: everything that maps occurs in one of them."""

from __future__ import annotations

HUMANOID = """
<mujoco model="humanoid">
  <compiler angle="degree"/>
  <option gravity="0 0 -9.81" timestep="0.005"/>
  <default>
    <joint armature="0.01" damping="0.2" limited="auto"/>
    <geom density="1000"/>
    <default class="stiff"><joint stiffness="10" damping="5" springref="12"/></default>
    <default class="foot"><geom type="capsule" size="0.027"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <light pos="0 0 3"/>
    <body name="torso" pos="0 0 1.4">
      <freejoint name="root"/>
      <camera name="eye"/>
      <geom type="capsule" fromto="0 -.07 0 0 .07 0" size="0.07"/>
      <geom name="head" type="sphere" pos="0 0 .19" size="0.09"/>
      <site name="imu" pos="0.01 0 0.1" euler="10 20 30"/>
      <body name="waist" pos="-.01 0 -.26" quat="1.0 0 -.002 0">
        <geom type="capsule" fromto="0 -.06 0 0 .06 0" size="0.06"/>
        <joint class="stiff" name="abdomen_z" axis="0 0 1" pos="0 0 0.065" range="-45 45"/>
        <joint class="stiff" name="abdomen_y" axis="0 1 0" pos="0 0 0.065" range="-75 30" ref="5"/>
        <body name="pelvis" pos="0 0 -.165" quat="1.0 0 -.1 0">
          <joint name="abdomen_x" axis="1 0 0" pos="0 0 0.1" range="-35 35"/>
          <geom type="box" size=".02 .07 .05" pos="-.02 0 0" euler="0 20 0"/>
          <body name="right_thigh" pos="0 -.1 -.04">
            <joint name="right_hip_x" axis="1 0 0" pos="0.01 0 0"/>
            <joint name="right_hip_z" axis="0 0 1" pos="0 0.02 0"/>
            <joint name="right_hip_y" axis="0 1 0" stiffness="20"/>
            <geom type="capsule" fromto="0 0 0 0 .01 -.34" size=".06"/>
            <body name="right_shin" pos="0 .01 -.403">
              <joint name="right_knee" pos="0 0 .02" axis="0 -1 0" range="-160 2"/>
              <geom type="capsule" fromto="0 0 0 0 0 -.3" size="0.049"/>
              <body name="right_foot" pos="0 0 -.39">
                <joint name="right_ankle" type="ball" stiffness="3" damping="0.4"/>
                <geom class="foot" fromto="-.07 -.02 0 .14 -.04 0"/>
                <site name="sole"/>
              </body>
            </body>
          </body>
          <body name="tail" pos="-.1 0 0"><geom size=".02" mass=".1"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="knee" joint="right_knee" gear="80"/>
    <position name="hip" joint="right_hip_y" kp="50"/>
  </actuator>
  <sensor><accelerometer site="imu"/></sensor>
</mujoco>
"""

CRANE = """
<mujoco model="crane">
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <body name="cart" pos="0 0 2" euler="0.1 0.2 0.3">
      <joint name="rail" type="slide" axis="1 1 0" range="-2 2" damping="3" armature="0.5" ref="0.25"
        frictionloss="0.2"/>
      <inertial pos="0.1 0 0" mass="3" fullinertia="1 2 2.5 0.1 0.2 0.3"/>
      <body name="boom">
        <joint name="swing" type="hinge" axis="0 1 1" pos="0 0 .1" ref="-0.4" springref="0.3" stiffness="7"/>
        <geom type="cylinder" size=".1 .5" pos="0 0 -.5"/>
        <site name="tip" pos="0 0 -1"/>
        <body name="load" pos="0 0 -1.2" gravcomp="0.7">
          <joint name="hook" type="slide" axis="0 1 2"/>
          <joint name="rope" type="ball" pos="0 0 .2" armature="0.02"/>
          <geom type="ellipsoid" size=".2 .1 .3"/>
          <site name="eye" pos=".1 .1 0"/>
        </body>
      </body>
    </body>
    <body name="post" pos="1 1 0"><geom size=".1"/><site name="ground_anchor" pos="0 0 1"/></body>
  </worldbody>
  <tendon>
    <spatial name="cable" stiffness="40" damping="2" springlength="0.5">
      <site site="eye"/><site site="ground_anchor"/>
    </spatial>
  </tendon>
  <actuator><motor name="winch" joint="swing" gear="5" armature="0.3"/></actuator>
</mujoco>
"""

TWO_FREE = """
<mujoco model="two">
  <option gravity="1 0 -5"/>
  <worldbody>
    <body name="one" pos="1 2 3" quat="1 2 3 4">
      <joint name="free_one" type="free" damping="0.7" stiffness="0.3"/>
      <geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
      <body name="arm" pos=".3 0 0" gravcomp="1.5">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
      </body>
    </body>
    <body name="two"><freejoint/><geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>
"""

MODELS = {"humanoid": HUMANOID, "crane": CRANE, "two free bodies": TWO_FREE}
